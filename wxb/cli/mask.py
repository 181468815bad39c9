"""`wxb mask` and `wxb unmask`. Slow imports are in functions, so that help starts fast."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain, combinations, product
from pathlib import Path
from typing import Annotated, Any

import typer

import wxb
from wxb.cli.options import (
    ARGUMENT,
    Experiment,
    existing_path,
    require_value,
    to_path,
    usage_error,
    visible_files,
)
from wxb.core.errors import WxbError
from wxb.core.files import write_lock
from wxb.core.wording import counted
from wxb.masking import files
from wxb.masking.files import Format, Layout, Source

# An empty argument is an error, not the current folder.
_PATH: dict[str, Any] = {"parser": to_path, "metavar": "<path>"}

Input = Annotated[
    str | None,
    typer.Argument(
        metavar=f"[{ARGUMENT}]", callback=require_value, help="default: -, standard input"
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        **_PATH, help="output file, or output folder for a FOLDER; default: standard output"
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="default: from the suffix, else text")
]
Lines = Annotated[bool, typer.Option("--lines", help="text format: each line is a document")]
Field = Annotated[
    list[str] | None,
    typer.Option(
        help="json and jsonl: a key of texts, or a path such as messages[].content; repeatable;"
        " default: text in jsonl, all strings in json"
    ),
]
Column = Annotated[
    list[str] | None, typer.Option(help="csv: a column of texts; repeatable; default: text")
]
_VALUES = "this value, /regular expression/, or @FILE with one of them per line; repeatable"


def mask(
    context: typer.Context,
    experiment: Experiment = "",
    source: Input = None,
    output: Output = None,
    operators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            callback=require_value,
            help="replace, redact, mask, hash, number, fake, or a YAML file by type; default:"
            " replace, or number with --mapping",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(**_PATH, help="JSON file for the values of placeholders; keep it secret"),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="minimum score of a span; default: from training"),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="mask only this type; repeatable")] = None,
    allow: Annotated[list[str] | None, typer.Option(help=f"keep {_VALUES}")] = None,
    deny: Annotated[list[str] | None, typer.Option(help=f"always mask {_VALUES}")] = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = None,
    column: Column = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="search the texts with rules, too; exit code 3 for misses"),
    ] = False,
) -> None:
    """Find personal data with a trained experiment, and replace it.

    Example: wxb mask -e ner-encoder --mapping secret.json letters --output masked

    A document is a FILE, a line (--lines), a string of JSON (.json, .jsonl) or a cell of a column
    (.csv, .tsv). Files must be UTF-8. JSON and CSV are parsed and written again, so spaces, escapes
    and quotes may change. Files of a FOLDER keep their names. Hidden files are skipped.

    \b
    A YAML file for --operators has an operator for each type, and DEFAULT for all others:
      DEFAULT: {operator: number}         # <CITY_1>, the same for the same value
      EMAIL: {operator: mask, masking_char: "*", chars_to_mask: 8}  # from_end
      GIVENNAME: {operator: fake, locale: de_DE, seed: 7}  # method: one of Faker
      SURNAME: {operator: hash}           # salt: here or in WXB_MASK_SALT
      AGE: {operator: keep}               # also: redact; replace, with new_value

    The same options give the same bytes. Placeholders are numbered through all documents, with
    --mapping also through all runs. Placeholders of the mapping that are already in a text are
    masked too, so that unmask restores the text. The mapping also keeps the fakes of two values
    apart. No path may be inside another one of the call.

    --verify counts e-mail addresses, card numbers, IBANs and international phone numbers that are
    not masked completely, except values of --allow.

    A file that is not UTF-8 or not in its format stops the command: it and later files are not
    written.

    Exit code: 0 success, 1 error, 2 usage, 3 --verify found values, 130 interrupted.
    """
    from wxb.masking.masker import Masker
    from wxb.masking.operators import Fake, Number
    from wxb.masking.placeholders import Mapping, apply_edits
    from wxb.project import trained

    secrets = [("--mapping", mapping)]
    if operators and Path(operators).is_file():  # it may have a salt
        secrets.append(("--operators", Path(operators)))
    for option, items in (("--allow", allow), ("--deny", deny)):
        secrets += [(option, Path(item[1:])) for item in items or () if item.startswith("@")]
    layout = Layout(format_, lines, field or (), column or ())
    sources = _sources(source, output, layout, secrets)
    if mapping:
        context.with_resource(write_lock(mapping.resolve()))
    recognizer: Any = wxb.load(experiment)
    if not hasattr(recognizer, "types"):
        raise WxbError(f"{experiment} predicts no spans; expected an experiment of task ner")
    masker = Masker(
        recognizer,
        operators or ("number" if mapping else "replace"),
        Mapping(mapping) if mapping else None,
        threshold=threshold,
        only=only or (),
        allow=allow or (),
        deny=deny or (),
    )
    if mapping and not any(isinstance(o, Number | Fake) for o in masker.operators.values()):
        usage_error("--mapping", "requires the operator number or fake, which --operators lacks")
    if caveat := trained.caveat(experiment):
        print(caveat, file=sys.stderr)
    left: Counter[str] = Counter()

    def masked(texts: list[str]) -> list[str]:
        rows = masker.edits(texts)
        if verify:
            left.update(chain.from_iterable(map(masker.unmasked_values, texts, rows)))
        if isinstance(masker.mapping, Mapping):
            masker.mapping.save()
        return [*map(apply_edits, texts, rows)]

    files.rewrite(sources, layout, masked)
    if left:
        by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(left.items()))
        print(f"wxb: --verify: {counted(left.total(), 'values')} left: {by_kind}", file=sys.stderr)
        raise typer.Exit(3)


def unmask(
    mapping: Annotated[
        Path, typer.Option(**_PATH, help="the file that `wxb mask --mapping` wrote")
    ],
    source: Input = None,
    output: Output = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = None,
    column: Column = None,
) -> None:
    """Replace placeholders by their values from a mapping.

    Example: wxb unmask --mapping secret.json masked --output letters

    Reads and writes files like mask; use the same --lines, --field and so on. Only the operator
    number can be undone: the output of replace, redact, mask, hash and fake is kept. Placeholders
    that the mapping lacks are kept, and counted on standard error.

    Exit code: 0 success, 1 error, 2 usage, 130 interrupted.
    """
    from wxb.masking.placeholders import Mapping

    if not mapping.is_file():
        raise WxbError(f"{mapping}: no such file; expected one that `wxb mask --mapping` wrote")
    layout = Layout(format_, lines, field or (), column or ())
    sources = _sources(source, output, layout, [("--mapping", mapping)])
    values = Mapping(mapping)
    unknown = 0

    def restored(texts: list[str]) -> list[str]:
        nonlocal unknown
        unknown += sum(map(values.unknown, texts))
        return [*map(values.restore, texts)]

    files.rewrite(sources, layout, restored)
    if unknown:
        print(
            f"wxb: {mapping} lacks {counted(unknown, 'placeholders')}, which are kept; were they"
            " written with another mapping?",
            file=sys.stderr,
        )


def _sources(
    argument: str | None, output: Path | None, layout: Layout, others: list[tuple[str, Path | None]]
) -> list[Source]:
    """The inputs of a text, file, folder or standard input, each with its output file.

    Files of a folder have the same relative path in `output`. Raises typer's usage error for
    options that no input uses, and if two paths of the call are one file or lie in one another:
    otherwise an output would replace an input or a secret, or a secret be read as an input.
    """
    path = existing_path(argument)
    if path is None:
        if argument is None and sys.stdin.isatty():
            usage_error(ARGUMENT, "missing; expected a text, a file, a folder or -")
        is_text = argument not in (None, "-")
        content = f"{argument}\n".encode() if is_text else None
        sources = [Source(content, "the text" if is_text else "standard input", output)]
    elif path.is_file() or not path.is_dir():
        sources = [Source(path, str(path), output)]
    elif output is None:
        usage_error(ARGUMENT, f"{path} is a folder, so --output is required: a folder")
    else:
        sources = [
            Source(file, str(file), output / file.relative_to(path)) for file in visible_files(path)
        ]
    named = [(option, other) for option, other in [("--output", output), *others] if other]
    inputs = [path, *(s.content for s in sources if isinstance(s.content, Path))] if path else []
    _require_apart(named, inputs)
    formats = {layout.format_of(source) for source in sources}
    for option, value, used in (
        ("--lines", layout.lines, {"text"}),
        ("--field", layout.fields, {"json", "jsonl"}),
        ("--column", layout.columns, {"csv"}),
    ):
        if value and not formats & used:
            usage_error(option, f"no input has the format {' or '.join(sorted(used))}; --format?")
    return sources


def _require_apart(named: list[tuple[str, Path]], inputs: list[Path]) -> None:
    """Raise typer's usage error if two paths, of which an option names one, overlap."""
    all_inputs = [("the input", path) for path in inputs]
    places = {path: path.resolve() for _, path in [*named, *all_inputs]}
    for (option, path), (other, other_path) in chain(
        combinations(named, 2), product(named, all_inputs)
    ):
        place, other_place = places[path], places[other_path]
        if (
            place.is_relative_to(other_place)
            or other_place.is_relative_to(place)
            or (path.exists() and other_path.exists() and path.samefile(other_path))  # hard links
        ):
            fault = f"{path} is the same as {other} {other_path}, or one is inside the other"
            usage_error(option, f"{fault}; choose another path")
