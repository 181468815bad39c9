"""`wxb mask` and `wxb unmask`. Slow imports are in functions, so that help starts fast."""

import sys
from io import BytesIO
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any

import typer

import wxb
from wxb.cli.options import (
    ARGUMENT,
    Experiment,
    path_unless_text,
    require_value,
    usage_error,
    visible_files,
)
from wxb.core.errors import WxbError, counted
from wxb.core.files import write_lock
from wxb.masking.files import Format, Source, format_of, rewrite
from wxb.masking.placeholders import BRACKETS, Placeholders
from wxb.project import trained

_LIST = "this value, /regular expression/, or @FILE with one of them per line; repeatable"

Input = Annotated[str | None, typer.Argument(metavar=f"[{ARGUMENT}]", callback=require_value)]
Output = Annotated[
    Path | None, typer.Option(help="of a FOLDER: a folder; default: standard output")
]
Form = Annotated[
    Format | None,
    typer.Option("--format", help="default: from the suffix, else text; markup: HTML or XML"),
]
Lines = Annotated[bool, typer.Option("--lines", help="text: each line is a document")]
Field = Annotated[
    list[str] | None,
    typer.Option(help="of JSON texts, as in messages[].content; repeatable; jsonl: default text"),
]
Column = Annotated[list[str] | None, typer.Option(help="csv: texts; repeatable; default: text")]
_FORMATS = {"lines": {"text", "markup"}, "field": {"json", "jsonl"}, "column": {"csv"}}


def mask(
    context: typer.Context,
    experiment: Experiment = "",
    source: Input = None,
    output: Output = None,
    operators: Annotated[
        str | None, typer.Option(callback=require_value, help="a name or YAML file, see above")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="JSON file of placeholders; keep it secret")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="lowest score of spans")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="mask only this type; repeatable")] = None,
    allow: Annotated[list[str] | None, typer.Option(help=f"keep {_LIST}")] = None,
    deny: Annotated[list[str] | None, typer.Option(help=f"always mask {_LIST}")] = None,
    format_: Form = None,
    lines: Lines = False,
    field: Field = None,
    column: Column = None,
    brackets: Annotated[str | None, typer.Option(help="<> (default), [] (in markup), {}")] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="list lines with values left in clear; exit code 1 if any"),
    ] = False,
) -> None:
    """Find personal data with a trained experiment, and replace it.

    Example: wxb mask -e ner-encoder --mapping secret.json letters --output masked

    A document is a FILE, a line (--lines), a string of JSON or a cell of a CSV column, in UTF-8.
    Hidden files of a FOLDER are skipped; --format is for those with an unknown suffix. A number of
    JSON is masked if --field names it, and is a string then.

    \b
    Operators: replace (the default), redact, mask, hash, number (with --mapping the default), fake.
    A YAML file has one for each type:
      DEFAULT: {operator: number}         # <CITY_1>, the same for the same value
      EMAIL: {operator: mask, masking_char: "*", chars_to_mask: 8}  # from_end
      GIVENNAME: {operator: fake, locale: de_DE}  # the same for a value and salt
      SURNAME: {operator: hash}           # salt: here or in WXB_MASK_SALT
      AGE: {operator: keep}               # also: redact; replace, with new_value

    Placeholders are numbered through all documents, with --mapping also through all runs. A span
    ends with its line. A part of an e-mail address, card number, IBAN, international phone number
    or value of the mapping is masked as a whole. --verify lists such values in clear, denied ones,
    and masked values and their capitalised words that stand elsewhere in clear.

    Exit code: 0 success, 1 error or values left in clear, 2 usage, 130 interrupted.
    """
    from wxb.masking.masker import LeakCheck, Masker

    option_files = [mapping, operators if Path(operators or "").is_file() else None]
    option_files += [item[1:] for item in (*(allow or ()), *(deny or ())) if item.startswith("@")]
    sources = _sources(context, option_files)
    if mapping:
        context.with_resource(write_lock(mapping.resolve().with_name(f"{mapping.name} in use")))
    recognizer: Any = wxb.load(experiment)
    if not hasattr(recognizer, "types"):
        raise WxbError(f"{experiment} predicts no spans; expected an experiment of task ner")
    options: Any = {"threshold": threshold, "only": only, "allow": allow, "deny": deny}
    operators = operators or ("number" if mapping else "replace")
    masker = Masker(recognizer, operators, Placeholders(mapping), **options, brackets=brackets)
    if mapping and not masker.uses_mapping:
        usage_error("--mapping", "requires the operator number or fake, which --operators lacks")
    trained.warn_if_generated(experiment)
    check = LeakCheck(masker)
    add = check.add if verify else lambda *_: None
    rewrite(sources, masker.edits, masker.mapping.save, add, brackets)
    if report := "\n".join(check.report()):
        raise WxbError(f"--verify: {report}")


def unmask(
    context: typer.Context,
    mapping: Annotated[Path, typer.Option(help="the file that `wxb mask --mapping` wrote")],
    source: Input = None,
    output: Output = None,
    format_: Form = None,
    lines: Lines = False,
    field: Field = None,
    column: Column = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="exit code 1 if some look altered")
    ] = False,
) -> None:
    """Replace placeholders by their values from a mapping.

    Example: wxb unmask --mapping secret.json masked --output letters

    Reads and writes files like mask; use the same --field and so on. Only the operator number can
    be undone. Other brackets, case, width, blanks and escapes of placeholders are read, too, as
    language models change them; strings that only look like them are kept and counted.

    Exit code: 0 success, 1 error, 2 usage, 130 interrupted.
    """
    if not mapping.is_file():
        raise WxbError(f"{mapping}: no such file; expected one that `wxb mask --mapping` wrote")
    values, sources = Placeholders(mapping), _sources(context, [mapping])
    rewrite(sources, values.restore, brackets=BRACKETS[0])
    if values.altered:
        restored = counted(values.restored, "placeholders")
        fault = f"{values.altered} look altered or are not in {mapping}, and are kept"
        print(f"wxb: {restored} restored, {fault}", file=sys.stderr)
        raise typer.Exit(int(strict))


def _sources(context: typer.Context, option_files: list[Any]) -> list[Source]:
    """The inputs of a text, file, folder or standard input, with output, format and field names.

    Files of a folder keep their relative paths in the output. Raises typer's usage error without
    input, for unused options, a folder without --output, and paths or `option_files` that overlap.
    """
    options = context.params
    argument, output, format_ = options["source"], options["output"], options["format_"]
    path = path_unless_text(argument)
    if path and path.is_dir():
        if not output:
            usage_error(ARGUMENT, f"{path} is a folder, so --output is required: a folder")
        sources = [
            Source(file, str(file), format_of(file, format_), output / file.relative_to(path))
            for file in visible_files(path)
        ]
    elif path:
        sources = [Source(path, str(path), format_ or format_of(path), output)]
    elif argument in (None, "-"):
        if argument is None and sys.stdin.isatty():
            usage_error(ARGUMENT, "missing; expected a text, a file, a folder or -")
        sources = [Source(sys.stdin.buffer, "standard input", format_, output)]
    else:
        if output and len(argument.split()) == 1:
            usage_error(ARGUMENT, f"no file {argument!r}; to mask this text, use standard input")
        sources = [Source(BytesIO(f"{argument}\n".encode()), "the text", format_, output)]
    fields = [field.replace("[]", "").strip(".") for field in options["field"] or ()]
    names = {"csv": options["column"] or ["text"], "json": fields, "jsonl": fields or ["text"]}
    for each in sources:
        each.by_line, each.names = options["lines"], names.get(each.format or "text", [])
    for option, formats in _FORMATS.items():
        if options[option] and formats.isdisjoint(each.format or "text" for each in sources):
            fault = f"no input has the format {' or '.join(sorted(formats))}; --format?"
            usage_error(f"--{option}", fault)
    inputs = [file for file in (path, *(s.content for s in sources)) if isinstance(file, Path)]
    own = [Path(name).resolve() for name in (output, *option_files) if name]
    for one, other in (*combinations(own, 2), *product(own, map(Path.resolve, inputs))):
        if one.is_relative_to(other) or other.is_relative_to(one):
            usage_error(str(one), f"the same as {other}, or one is inside the other")
    return sources
