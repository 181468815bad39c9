"""`wxb mask` and `wxb unmask`. What takes long to import waits until it is needed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import wxb
from wxb.cli.options import ARGUMENT, path_of, require_value, to_path, usage_error
from wxb.core.errors import WxbError, choices
from wxb.masking import folders
from wxb.masking.documents import Document
from wxb.masking.sources import Format, Layout
from wxb.project.completion import names

if TYPE_CHECKING:
    from wxb.masking.edits import Edit
    from wxb.masking.mapping import Mapping
    from wxb.masking.masker import Masker, Report
    from wxb.masking.operators import Operators
    from wxb.masking.work import Part

SHOWN = 3  # unknown placeholders that unmask names

# Typer would take an empty argument for the folder here.
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
        **_PATH, help="file to write, or folder for those of a FOLDER; default: standard output"
    ),
]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="default: from the suffix, else text")
]
Lines = Annotated[bool, typer.Option("--lines", help="of text: each line is a document")]
Field = Annotated[str, typer.Option(help="of JSONL: the key of the text")]
Column = Annotated[str, typer.Option(help="of CSV: the name of the text's column")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        **_PATH, help="encrypts the mapping with this key; mask makes one if there is no file"
    ),
]
SkipUnreadable = Annotated[
    bool,
    typer.Option("--skip-unreadable", help="of a FOLDER: skip files that cannot be read"),
]


def mask(
    experiment: Annotated[
        str,
        typer.Option(
            "--experiment",
            "-e",
            callback=require_value,
            help="a trained experiment, or the path of its folder",
            autocompletion=names("experiments"),
        ),
    ],
    source: Input = None,
    output: Output = None,
    operators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            callback=require_value,
            help="replace, redact, mask, hash, encrypt, number, fake, or a YAML file by type;"
            " default: replace, or number with --mapping",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(**_PATH, help="JSON file that keeps what placeholders stand for: a secret"),
    ] = None,
    key_file: KeyFile = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="least score of a span; default: chosen in training"),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="mask this type alone; repeatable")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="leave this value; repeatable")] = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = "text",
    column: Column = "text",
    skip_unreadable: SkipUnreadable = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="write masked texts and spans with scores, as JSONL")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(**_PATH, help="JSON file for counts by type; never has values")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="look into the masked texts, too; exit 3 if not clean")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="write nothing; print the counts by type")
    ] = False,
) -> None:
    """Find personal data with a trained experiment, and replace it.

    Example: wxb mask -e ner-encoder --mapping secret.json letters --output masked

    A FILE is one document, a line (--lines), the field of each JSON line (.jsonl) or the column of
    each row (.csv, .tsv); it must be UTF-8, and all around the spans keeps its bytes. Files of a
    FOLDER keep their names and permissions; hidden ones are left out.

    \b
    A YAML for --operators has one for each type, and DEFAULT for the rest:
      DEFAULT: {operator: number}         # <CITY_1>, the same for the same value
      EMAIL: {operator: mask, masking_char: "*", chars_to_mask: 8}  # from_end
      GIVENNAME: {operator: fake, locale: de_DE, seed: 7}  # method: one of Faker
      SURNAME: {operator: hash}           # salt: here or in WXB_MASK_SALT
      IDCARDNUM: {operator: encrypt}      # key: here or in WXB_MASK_KEY
      AGE: {operator: keep}               # also: redact; replace, with new_value

    The same options give the same bytes, except for encrypt, which is randomized. With --mapping,
    numbers count through all documents; otherwise they restart in each. If a text already has a
    placeholder of the mapping, that gets a placeholder too, so that unmask restores the text.

    --json writes spans as {start, end, label, score, new}; offsets count characters of the input.
    --verify counts spans with letters or digits that no operator wrote.

    If files of a FOLDER are not UTF-8, or not in their format, they are all listed and nothing is
    masked; with --skip-unreadable they are listed and skipped. A subfolder that cannot be read is
    always listed and skipped. --report counts what was skipped.

    Exit status: 0 done (with --skip-unreadable even if something was skipped), 1 error or a
    subfolder that cannot be read, 2 usage, 3 --verify found something, 130 interrupted.
    """
    from wxb.masking import work
    from wxb.masking.masker import Report

    chosen, kept = _replacements(operators, mapping, key_file, dry_run=dry_run)
    layout = Layout(format_, lines, field, column)
    stream, skipped = _stream(
        source,
        None if dry_run else output,
        layout,
        one_output=as_json or dry_run,
        skip_unreadable=skip_unreadable,
    )
    masker = _masker(experiment, chosen, kept)
    _choose(masker, experiment, threshold, only, allow)
    counts = Report(experiment, skipped=len(skipped))

    def change(texts: Sequence[str]) -> list[list[Edit]]:
        done = masker.edits(texts, counts)
        if verify:
            masker.verify(texts, done, counts)
        return done

    with work.Nowhere() if dry_run else work.Sink() as sink:
        saved = None if dry_run else kept
        work.process(stream, change, _as_json if as_json else _as_it_was, sink, saved)
    _tell(counts, report, dry_run=dry_run)
    if skipped and not skip_unreadable:
        raise typer.Exit(1)
    if counts.left:
        raise typer.Exit(3)


def unmask(
    mapping: Annotated[Path, typer.Option(**_PATH, help="what `wxb mask --mapping` wrote")],
    source: Input = None,
    output: Output = None,
    key_file: KeyFile = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = "text",
    column: Column = "text",
    skip_unreadable: SkipUnreadable = False,
) -> None:
    """Replace the placeholders of a mapping by their values.

    Example: wxb unmask --mapping secret.json masked --output letters

    Reads and writes files like mask; use the same --lines, --field and so on. Only the operator
    number can be undone: the output of replace, redact, mask, hash, fake and encrypt stays.
    Placeholders that the mapping lacks stay, and are listed on standard error.

    Exit status: 0 done (with --skip-unreadable even if something was skipped), 1 error or a
    subfolder that cannot be read, 2 usage, 130 interrupted.
    """
    from wxb.masking import mapping as mappings
    from wxb.masking import work

    if not mapping.is_file():
        raise WxbError(f"{mapping}: no such file; expected one that `wxb mask --mapping` wrote")
    key = mappings.read_key(key_file, new=False) if key_file else None
    values = mappings.Mapping(mapping, key)
    layout = Layout(format_, lines, field, column)
    stream, skipped = _stream(source, output, layout, skip_unreadable=skip_unreadable)
    strange: Counter[str] = Counter()

    def undo(texts: Sequence[str]) -> list[list[Edit]]:
        strange.update(one for text in texts for one in values.strange(text))
        return list(map(values.undone, texts))

    with work.Sink() as sink:
        work.process(stream, undo, _restored, sink)
    if strange:
        # Only what has the form of a type is shown: another text could be someone's words.
        shown = [one for one in strange if one.isupper() and one.isascii()][:SHOWN]
        more = [*shown, "..."] if len(strange) > len(shown) else shown
        print(
            f"wxb: {mapping} does not know all placeholders: {strange.total()} stay as they are"
            f" ({', '.join(more)}); were they written with another mapping?",
            file=sys.stderr,
        )
    if skipped and not skip_unreadable:
        raise typer.Exit(1)


def _stream(
    source: str | None,
    output: Path | None,
    layout: Layout,
    *,
    one_output: bool = False,
    skip_unreadable: bool = False,
) -> tuple[Iterator[Part], list[str]]:
    """The documents of the text, file or folder that is meant, or of standard input.

    With them a line for each file or subfolder of a folder that is skipped; it has been told on
    standard error, too. Raises typer's usage error before any is read.
    """
    from wxb.masking import work

    path = path_of(source)
    if path is None:
        target = folders.file_to_write(output) if output else None
        if source in (None, "-"):
            if source is None and sys.stdin.isatty():
                usage_error(ARGUMENT, "missing: what shall be read?")
            return work.parts([folders.Source(None, "standard input", target)], layout), []
        assert source is not None
        text = folders.Source(None, "the text", target)
        whole = work.Part(text, Document(source, after="\n"), 1)
        return iter([whole, work.Part(text, None)]), []
    if path.is_dir() and output is None and not one_output:
        usage_error(
            ARGUMENT,
            f"{path} is a folder, so --output is needed: the folder for what is made of it",
        )
    found = folders.sources(path, output, one_output=one_output)
    if path.is_dir():
        found = folders.readable(found, layout, skip=skip_unreadable)
        for line in found.unread:
            print(f"wxb: skipped: {line}", file=sys.stderr)
    parts = work.parts(found.sources, layout)
    return work.joined(parts) if one_output else parts, found.unread


def _replacements(
    operators: str | None, mapping: Path | None, key_file: Path | None, *, dry_run: bool
) -> tuple[Operators, Mapping | None]:
    """The operators, and the mapping that they write, held until the process ends."""
    from wxb.masking import mapping as mappings
    from wxb.masking import operators as known

    chosen = known.read(operators or ("number" if mapping else "replace"))
    if mapping is None:
        if key_file:
            usage_error("--key-file", "encrypts a --mapping, and there is none")
        return chosen, None
    if not any(isinstance(operator, known.Number) for operator in chosen.values()):
        usage_error(
            "--mapping", "is written by the operator number, and --operators has it nowhere"
        )
    mapping = folders.file_to_write(mapping)
    if not dry_run:
        mappings.hold(mapping)
    fresh = not dry_run and not mapping.exists()
    new_and_dry = dry_run and not mapping.exists()  # nothing to open, nothing to write
    key = mappings.read_key(key_file, new=fresh) if key_file and not new_and_dry else None
    return chosen, mappings.Mapping(mapping, key)


def _masker(experiment: str, operators: Operators, mapping: Mapping | None) -> Masker:
    from wxb.masking import operators as known
    from wxb.masking.masker import Masker

    recognizer: Any = wxb.load(experiment)
    if not hasattr(recognizer, "types"):
        raise WxbError(f"{experiment}: finds no entities; expected an experiment of task ner")
    known.check_types(operators, recognizer.types, experiment)
    return Masker(recognizer, operators, mapping)


def _choose(
    masker: Masker,
    experiment: str,
    threshold: float | None,
    only: list[str] | None,
    allow: list[str] | None,
) -> None:
    """What of the found spans is masked."""
    types = masker.recognizer.types
    if unknown := sorted({*(only or ())} - {*types}):
        usage_error("--only", f"{experiment} finds no {unknown[0]!r}{choices(unknown[0], types)}")
    masker.only = frozenset(only) if only else None
    masker.allowed = frozenset(allow or ())
    if threshold is not None:
        masker.recognizer.threshold = threshold


def _as_it_was(part: Part, edits: list[Edit]) -> bytes:
    assert part.document is not None
    return part.document.written(edits)


def _restored(part: Part, edits: list[Edit]) -> bytes:
    assert part.document is not None
    return part.document.written(edits, restored=True)


def _as_json(part: Part, edits: list[Edit]) -> bytes:
    """A line for a document: its source, the masked text, and spans in characters of the input."""
    from wxb.masking.edits import applied

    assert part.document is not None
    if not part.document.text:
        return b""
    spans = [
        {"start": e.start, "end": e.end, "label": e.type, "score": e.score, "new": e.new}
        for e in edits
    ]
    told = {
        "source": part.source.name,
        "document": part.number,
        "text": applied(part.document.text, edits),
        "spans": spans,
    }
    return (json.dumps(told, ensure_ascii=False) + "\n").encode()


def _tell(counts: Report, report: Path | None, *, dry_run: bool) -> None:
    from wxb.core.files import publish, write_json
    from wxb.masking import work

    told = counts.told()
    if report:
        try:
            with publish(report.resolve()) as (draft,):
                write_json(draft, told)
        except OSError as error:
            raise WxbError(f"{report}: cannot be written ({error.strerror})") from None
    if dry_run:
        with work.standard_output() as file:
            file.write((json.dumps(told, ensure_ascii=False, indent=2) + "\n").encode())
            file.flush()
    if counts.left:
        by_type = ", ".join(f"{type_} {count}" for type_, count in sorted(counts.left.items()))
        print(
            f"wxb: --verify: {counts.left.total()} spans still found in {counts.documents_left} of"
            f" {counts.documents} documents ({by_type}); a lower --threshold masks more",
            file=sys.stderr,
        )
