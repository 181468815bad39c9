"""`wxb mask` and `wxb unmask`. Slow imports are in functions, so that help starts fast."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tqdm import tqdm

import wxb
from wxb.cli.options import (
    ARGUMENT,
    Experiment,
    existing_path,
    require_value,
    to_path,
    usage_error,
)
from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json, write_lock
from wxb.core.wording import counted
from wxb.masking import files
from wxb.masking.files import Format, Layout, Source

if TYPE_CHECKING:
    from wxb.masking.masker import Masker, Report

SHOWN = 3  # unknown placeholders in the warning of unmask

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
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="skip files of a FOLDER that cannot be read")
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
    skip_unreadable: SkipUnreadable = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="write masked texts and spans with scores, as JSONL")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(**_PATH, help="JSON file for counts by type, without values")
    ] = None,
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
    apart.

    --json writes spans as {start, end, label, score, new}; offsets count characters of the input.
    --verify counts e-mail addresses, card numbers, IBANs and international phone numbers that are
    not masked completely.

    If files are not UTF-8, or not in their format, they are listed and nothing is masked; with
    --skip-unreadable they are listed and skipped. No path may be inside another one of the call.

    Exit code: 0 success, 1 error, 2 usage, 3 --verify found values, 130 interrupted.
    """
    from wxb.masking.masker import Masker, Report
    from wxb.masking.operators import Fake, Number
    from wxb.masking.placeholders import Mapping
    from wxb.project import trained

    named = {"--mapping": mapping, "--report": report, "--operators": _file(operators)}
    for option, items in (("--allow", allow), ("--deny", deny)):
        named |= {
            f"{option} {item}": Path(item[1:]) for item in items or () if item.startswith("@")
        }
    if verify and only:
        usage_error("--verify", "does not go with --only: its rules have other types")
    layout = Layout(format_, lines, _paths(field), column or ())
    sources = _sources(source, output, layout, named, one_output=as_json)
    sources, skipped = _readable(sources, layout, skip=skip_unreadable)
    if mapping:
        try:
            context.with_resource(write_lock(mapping.resolve()))
        except OSError as error:
            raise WxbError(f"{mapping}: cannot be written ({error.strerror})") from None
    placeholders = Mapping(mapping) if mapping else None
    masker = Masker(
        _recognizer(experiment),
        operators or ("number" if mapping else "replace"),
        placeholders,
        threshold=threshold,
        only=only or (),
        allow=allow or (),
        deny=deny or (),
    )
    uses_mapping = any(isinstance(o, Number | Fake) for o in masker.operators.values())
    if mapping and not uses_mapping:
        usage_error("--mapping", "requires the operator number or fake, which --operators lacks")
    if caveat := trained.caveat(experiment):
        print(caveat, file=sys.stderr)
    counts = Report(experiment, skipped, left=Counter() if verify else None)
    parts = _masked(masker, sources, layout, counts, as_json=as_json)
    files.write(parts, placeholders.save if placeholders else None)
    _report(counts, report)


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
    skip_unreadable: SkipUnreadable = False,
) -> None:
    """Replace placeholders by their values from a mapping.

    Example: wxb unmask --mapping secret.json masked --output letters

    Reads and writes files like mask; use the same --lines, --field and so on. Only the operator
    number can be undone: the output of replace, redact, mask, hash and fake is kept. Placeholders
    that the mapping lacks are kept, and listed on standard error.

    Exit code: 0 success, 1 error, 2 usage, 130 interrupted.
    """
    from wxb.masking.placeholders import Mapping

    if not mapping.is_file():
        raise WxbError(f"{mapping}: no such file; expected one that `wxb mask --mapping` wrote")
    layout = Layout(format_, lines, _paths(field), column or ())
    sources = _sources(source, output, layout, {"--mapping": mapping})
    sources, _ = _readable(sources, layout, skip=skip_unreadable)
    values = Mapping(mapping)
    unknown: Counter[str] = Counter()

    def restored() -> Iterator[tuple[Source, str]]:
        for origin, record in files.stream(sources, layout):
            unknown.update(name for text in record.texts for name in values.unknown(text))
            yield origin, record.render([*map(values.restore, record.texts)])

    files.write(restored())
    if unknown:
        # Only upper-case strings are shown: others may be words of the text.
        shown = [name for name in unknown if name.isupper() and name.isascii()][:SHOWN]
        names = [*shown, "..."] if len(unknown) > len(shown) else shown
        print(
            f"wxb: {mapping} lacks {counted(unknown.total(), 'placeholders')}, which are kept"
            f" ({', '.join(names)}); were they written with another mapping?",
            file=sys.stderr,
        )


def _file(operators: str | None) -> Path | None:
    """The path in --operators, which may have a salt; None for a name."""
    return Path(operators) if operators and Path(operators).is_file() else None


def _paths(fields: list[str] | None) -> list[str]:
    """Paths of keys, in which positions in lists are left out."""
    return [field.replace("[]", "") for field in fields or ()]


def _sources(
    argument: str | None,
    output: Path | None,
    layout: Layout,
    others: dict[str, Path | None],
    *,
    one_output: bool = False,
) -> list[Source]:
    """The inputs of a text, file, folder or standard input.

    Raises typer's usage error if two paths of the call are one file or lie in one another:
    otherwise an output would replace an input or a secret, or a secret be read as an input. Also
    for options that no input uses.
    """
    path = existing_path(argument)
    if path is None:
        if argument is None and sys.stdin.isatty():
            usage_error(ARGUMENT, "missing; expected a text, a file, a folder or -")
        is_text = argument not in (None, "-")
        content = f"{argument}\n".encode() if is_text else None
        sources = [Source(content, "the text" if is_text else "standard input", output)]
    else:
        if path.is_dir() and output is None and not one_output:
            usage_error(ARGUMENT, f"{path} is a folder, so --output is required: a folder")
        sources = files.find_sources(path, output, one_output=one_output)
    inputs = [path, *(s.content for s in sources if isinstance(s.content, Path))] if path else []
    named = {"--output": output, **others}
    paths = {option: [own] for option, own in named.items() if own}
    if collision := files.find_collision({**paths, "the input": inputs}):
        usage_error(
            collision.option,
            f"{collision.path} is the same as {collision.other_option} {collision.other_path}, or"
            " one is inside the other; choose another path",
        )
    formats = {layout.format_of(source) for source in sources}
    for option, value, used in (
        ("--lines", layout.lines, {"text"}),
        ("--field", layout.fields, {"json", "jsonl"}),
        ("--column", layout.columns, {"csv"}),
    ):
        if value and not formats & used:
            usage_error(option, f"no input has the format {' or '.join(sorted(used))}; --format?")
    return sources


def _readable(sources: list[Source], layout: Layout, *, skip: bool) -> tuple[list[Source], int]:
    """The inputs that can be read, and how many are skipped; prints why.

    Without `skip`, or if no input is left, raises WxbError with the errors of all.
    """
    errors = files.unreadable(sources, layout)
    if errors and not (skip and len(errors) < len(sources)):
        hint = " (--skip-unreadable skips such files)" if len(errors) < len(sources) else ""
        raise WxbError("\n  ".join([f"nothing is written{hint}:", *errors.values()]))
    for error in errors.values():
        print(f"wxb: skipped: {error}", file=sys.stderr)
    return [source for source in sources if source not in errors], len(errors)


def _recognizer(experiment: str) -> Any:
    recognizer: Any = wxb.load(experiment)
    if not hasattr(recognizer, "types"):
        raise WxbError(f"{experiment} predicts no spans; expected an experiment of task ner")
    return recognizer


def _masked(
    masker: Masker, sources: Sequence[Source], layout: Layout, counts: Report, *, as_json: bool
) -> Iterator[tuple[Source, str]]:
    """The parts of the outputs; shows progress if standard error is a terminal."""
    from wxb.masking.placeholders import apply_edits

    parts = files.stream(sources, layout)
    bar = tqdm(parts, unit="doc", disable=None, file=sys.stderr, leave=False)
    number: Counter[str] = Counter()  # of the last text, by source
    for batch in files.batches(bar):
        texts = [text for _, record in batch for text in record.texts if text]
        rows = iter(masker.edits(texts, counts))
        for source, record in batch:
            edits = [next(rows) if text else [] for text in record.texts]
            if not as_json:
                yield source, record.render([*map(apply_edits, record.texts, edits)])
                continue
            for text, row in zip(record.texts, edits, strict=True):
                number[source.name] += bool(text)
                spans = [
                    {
                        "start": e.start,
                        "end": e.end,
                        "label": e.type,
                        "score": e.score,
                        "new": e.new,
                    }
                    for e in row
                ]
                content = {"source": source.name, "document": number[source.name]}
                content |= {"text": apply_edits(text, row), "spans": spans}
                yield source, json.dumps(content, ensure_ascii=False) + "\n" if text else ""


def _report(counts: Report, report: Path | None) -> None:
    """Write the report file, and warn of values found by --verify, with exit code 3."""
    if report:
        try:
            with publish(report) as (draft,):
                write_json(draft, counts.to_json())
        except OSError as error:
            raise WxbError(f"{report}: cannot be written ({error.strerror})") from None
    if counts.left:
        by_type = ", ".join(f"{type_} {count}" for type_, count in sorted(counts.left.items()))
        print(
            f"wxb: --verify: {counted(counts.left.total(), 'values')} not masked in"
            f" {counts.documents_left} of {counted(counts.documents, 'documents')} ({by_type})",
            file=sys.stderr,
        )
        raise typer.Exit(3)
