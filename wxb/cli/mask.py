"""`wxb mask` and `wxb unmask`. Slow imports are in functions, so that help starts fast."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import wxb
from wxb.cli.options import (
    ARGUMENT,
    Experiment,
    existing_path,
    require_value,
    to_path,
    usage_error,
)
from wxb.core.errors import WxbError, choices
from wxb.core.wording import counted
from wxb.masking import folders
from wxb.masking.documents import Document
from wxb.masking.sources import Format, Layout

if TYPE_CHECKING:
    from wxb.masking.edits import Edit
    from wxb.masking.mapping import Mapping
    from wxb.masking.masker import Masker, Report
    from wxb.masking.operators import Operators
    from wxb.masking.work import Part

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
Field = Annotated[str, typer.Option(help="jsonl format: the key of the text")]
Column = Annotated[str, typer.Option(help="csv format: the column of the text")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        **_PATH, help="encrypt the mapping with the key in this file; mask creates a new file"
    ),
]
SkipUnreadable = Annotated[
    bool,
    typer.Option("--skip-unreadable", help="skip files of a FOLDER that cannot be read"),
]


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
            help="replace, redact, mask, hash, encrypt, number, fake, or a YAML file by type;"
            " default: replace, or number with --mapping",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            **_PATH,
            help="JSON file for the values of placeholders; keep it secret, git ignores it",
        ),
    ] = None,
    key_file: KeyFile = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="minimum score of a span; default: from training"),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="mask only this type; repeatable")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="keep this value; repeatable")] = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = "text",
    column: Column = "text",
    skip_unreadable: SkipUnreadable = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="write masked texts and spans with scores, as JSONL")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(**_PATH, help="JSON file for counts by type, without values")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="search the masked texts too, with the model and with rules; exit code 3 if spans"
            " are found",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="write nothing; print the counts by type")
    ] = False,
) -> None:
    """Find personal data with a trained experiment, and replace it.

    Example: wxb mask -e ner-encoder --mapping secret.json letters --output masked

    A document is a FILE, a line (--lines), a field of each JSON line (.jsonl) or a column of each
    row (.csv, .tsv). Files must be UTF-8; all bytes outside of spans are kept. Files of a FOLDER
    keep their names and permissions. Hidden files are skipped.

    \b
    A YAML file for --operators has an operator for each type, and DEFAULT for all others:
      DEFAULT: {operator: number}         # <CITY_1>, the same for the same value
      EMAIL: {operator: mask, masking_char: "*", chars_to_mask: 8}  # from_end
      GIVENNAME: {operator: fake, locale: de_DE, seed: 7}  # method: one of Faker
      SURNAME: {operator: hash}           # salt: here or in WXB_MASK_SALT
      IDCARDNUM: {operator: encrypt}      # key: here or in WXB_MASK_KEY
      AGE: {operator: keep}               # also: redact; replace, with new_value

    The same options give the same bytes, except for encrypt, which is randomized. With --mapping,
    placeholders are numbered through all documents, otherwise in each document. Placeholders of
    the mapping that are already in a text are masked too, so that unmask restores the text.

    --json writes spans as {start, end, label, score, new}; offsets count characters of the input.
    --verify counts spans with letters or digits that are not from an operator. Its rules find
    e-mail addresses, card numbers, IBANs and international phone numbers.

    If files of a FOLDER are not UTF-8, or not in their format, they are listed and nothing is
    masked; with --skip-unreadable they are listed and skipped. Subfolders that cannot be read are
    always listed and skipped. --report counts skipped files and subfolders.

    Exit code: 0 success (with --skip-unreadable also if something was skipped), 1 error or a
    subfolder that cannot be read, 2 usage, 3 --verify found spans, 130 interrupted.
    """
    from wxb.masking import work
    from wxb.masking.masker import Report
    from wxb.project import trained

    secrets = {"--mapping": mapping, "--key-file": key_file, "--operators": _file(operators)}
    _check_paths(source, output, {**secrets, "--report": report})
    replacements, placeholders = _replacements(
        context, operators, mapping, key_file, dry_run=dry_run
    )
    layout = Layout(format_, lines, field, column)
    stream, skipped = _stream(
        source,
        None if dry_run else output,
        layout,
        one_output=as_json or dry_run,
        skip_unreadable=skip_unreadable,
    )
    masker = _load_masker(experiment, replacements, placeholders)
    _select_spans(masker, experiment, threshold, only, allow)
    if caveat := trained.caveat(experiment):
        print(caveat, file=sys.stderr)
    counts = Report(experiment, skipped=len(skipped))

    def change(texts: Sequence[str]) -> list[list[Edit]]:
        edits = masker.edits(texts, counts)
        if verify:
            masker.verify(texts, edits, counts)
        return edits

    with work.NullSink() if dry_run else work.Sink() as sink:
        emit = _json_line if as_json else _to_bytes
        work.process(stream, change, emit, sink, None if dry_run else placeholders)
    _report(counts, report, dry_run=dry_run)
    if skipped and not skip_unreadable:
        raise typer.Exit(1)
    if counts.left:
        raise typer.Exit(3)


def unmask(
    mapping: Annotated[
        Path, typer.Option(**_PATH, help="the file that `wxb mask --mapping` wrote")
    ],
    source: Input = None,
    output: Output = None,
    key_file: KeyFile = None,
    format_: FormatOption = None,
    lines: Lines = False,
    field: Field = "text",
    column: Column = "text",
    skip_unreadable: SkipUnreadable = False,
) -> None:
    """Replace placeholders by their values from a mapping.

    Example: wxb unmask --mapping secret.json masked --output letters

    Reads and writes files like mask; use the same --lines, --field and so on. Only the operator
    number can be undone: the output of replace, redact, mask, hash, fake and encrypt is kept.
    Placeholders that the mapping lacks are kept, and listed on standard error.

    Exit code: 0 success (with --skip-unreadable also if something was skipped), 1 error or a
    subfolder that cannot be read, 2 usage, 130 interrupted.
    """
    from wxb.masking import mapping as mappings
    from wxb.masking import work

    if not mapping.is_file():
        raise WxbError(f"{mapping}: no such file; expected one that `wxb mask --mapping` wrote")
    _check_paths(source, output, {"--mapping": mapping, "--key-file": key_file})
    key = mappings.read_key(key_file, create=False) if key_file else None
    values = mappings.Mapping(mapping, key)
    layout = Layout(format_, lines, field, column)
    stream, skipped = _stream(source, output, layout, skip_unreadable=skip_unreadable)
    unknown: Counter[str] = Counter()

    def restore(texts: Sequence[str]) -> list[list[Edit]]:
        unknown.update(placeholder for text in texts for placeholder in values.unknown(text))
        return list(map(values.restore, texts))

    with work.Sink() as sink:
        work.process(stream, restore, partial(_to_bytes, is_restored=True), sink)
    if unknown:
        # Only upper-case strings are shown: others may be words of the text.
        shown = [name for name in unknown if name.isupper() and name.isascii()][:SHOWN]
        names = [*shown, "..."] if len(unknown) > len(shown) else shown
        print(
            f"wxb: {mapping} lacks {counted(unknown.total(), 'placeholders')}, which are kept"
            f" ({', '.join(names)}); were they written with another mapping?",
            file=sys.stderr,
        )
    if skipped and not skip_unreadable:
        raise typer.Exit(1)


def _check_paths(source: str | None, output: Path | None, others: dict[str, Path | None]) -> None:
    """Raise typer's usage error if two paths of a call are one file or lie in one another.

    Otherwise an output would replace an input or a secret, or a secret be read as an input.
    """
    path = existing_path(source)
    inputs = [path, *folders.list_files(path)[0]] if path else []
    named = {"--output": output, **others}
    paths = {option: [path] for option, path in named.items() if path}
    if collision := folders.find_collision({**paths, "the input": inputs}):
        option, path, other_option, other = collision
        usage_error(
            option,
            f"{path} is the same as {other_option} {other}, or one is inside the other; choose"
            " another path",
        )


def _file(operators: str | None) -> Path | None:
    """The path in --operators, which may have a salt or a key; None for a name."""
    return Path(operators) if operators and Path(operators).is_file() else None


def _stream(
    source: str | None,
    output: Path | None,
    layout: Layout,
    *,
    one_output: bool = False,
    skip_unreadable: bool = False,
) -> tuple[Iterator[Part], list[str]]:
    """The documents of a text, file, folder or standard input, and lines on skipped files.

    Prints these lines to standard error. Raises typer's usage error before any file is read.
    """
    from wxb.masking import work

    path = existing_path(source)
    if path is None:
        target = folders.resolve_output(output) if output else None
        if source in (None, "-"):
            if source is None and sys.stdin.isatty():
                usage_error(ARGUMENT, "missing; expected a text, a file, a folder or -")
            return work.read_parts([folders.Source(None, "standard input", target)], layout), []
        assert source is not None
        text = folders.Source(None, "the text", target)
        part = work.Part(text, Document(source, after="\n"), 1)
        return iter([part, work.Part(text, None)]), []
    if path.is_dir() and output is None and not one_output:
        usage_error(ARGUMENT, f"{path} is a folder, so --output is required: a folder for results")
    inputs = folders.find_inputs(path, output, one_output=one_output)
    if path.is_dir() or path.is_file():  # a pipe can be read once only
        inputs = folders.check_inputs(inputs, layout, skip=skip_unreadable)
        for line in inputs.unreadable:
            print(f"wxb: skipped: {line}", file=sys.stderr)
    parts = work.read_parts(inputs.sources, layout)
    return work.with_one_end(parts) if one_output else parts, inputs.unreadable


def _replacements(
    context: typer.Context,
    operators: str | None,
    mapping: Path | None,
    key_file: Path | None,
    *,
    dry_run: bool,
) -> tuple[Operators, Mapping | None]:
    """The operators and the mapping, which is locked until the command ends, or None."""
    from wxb.masking import git
    from wxb.masking import mapping as mappings
    from wxb.masking.operators import Number, read_operators

    by_type = read_operators(operators or ("number" if mapping else "replace"))
    if mapping is None:
        if key_file:
            usage_error("--key-file", "requires --mapping, which it encrypts")
        return by_type, None
    if not any(isinstance(operator, Number) for operator in by_type.values()):
        usage_error("--mapping", "requires the operator number, which --operators lacks")
    mapping = folders.resolve_output(mapping)
    if not dry_run:
        for secret in filter(None, (mapping, key_file)):
            git.exclude(secret)
        context.with_resource(mappings.lock_mapping(mapping))
    exists = mapping.exists()
    key = (
        mappings.read_key(key_file, create=not dry_run and not exists)
        if key_file and (exists or not dry_run)
        else None
    )
    return by_type, mappings.Mapping(mapping, key)


def _load_masker(experiment: str, operators: Operators, mapping: Mapping | None) -> Masker:
    from wxb.masking.masker import Masker
    from wxb.masking.operators import check_types

    recognizer: Any = wxb.load(experiment)
    if not hasattr(recognizer, "types"):
        raise WxbError(f"{experiment} predicts no spans; expected an experiment of task ner")
    check_types(operators, recognizer.types, experiment)
    return Masker(recognizer, operators, mapping)


def _select_spans(
    masker: Masker,
    experiment: str,
    threshold: float | None,
    only: list[str] | None,
    allow: list[str] | None,
) -> None:
    """Set which predicted spans are masked."""
    types = masker.recognizer.types
    if unknown := sorted({*(only or ())} - {*types}):
        usage_error(
            "--only", f"{experiment} has no type {unknown[0]!r}{choices(unknown[0], types)}"
        )
    masker.only = frozenset(only) if only else None
    masker.allowed = frozenset(allow or ())
    if threshold is not None:
        masker.recognizer.threshold = threshold


def _to_bytes(part: Part, edits: list[Edit], *, is_restored: bool = False) -> bytes:
    assert part.document is not None
    return part.document.to_bytes(edits, is_restored=is_restored)


def _json_line(part: Part, edits: list[Edit]) -> bytes:
    """A JSON line with the source of a document, its masked text, and its spans in the input."""
    from wxb.masking.edits import apply_edits

    assert part.document is not None
    if not part.document.text:
        return b""
    spans = [
        {"start": e.start, "end": e.end, "label": e.type, "score": e.score, "new": e.new}
        for e in edits
    ]
    content = {
        "source": part.source.name,
        "document": part.number,
        "text": apply_edits(part.document.text, edits),
        "spans": spans,
    }
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def _report(counts: Report, report: Path | None, *, dry_run: bool) -> None:
    """Write the report file, print the report of a dry run, and warn of spans found by verify."""
    from wxb.core.files import publish, write_json
    from wxb.masking import work

    content = counts.to_json()
    if report:
        try:
            with publish(report.resolve()) as (draft,):
                write_json(draft, content)
        except OSError as error:
            raise WxbError(f"{report}: cannot be written ({error.strerror})") from None
    if dry_run:
        with work.standard_output() as file:
            file.write((json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())
            file.flush()
    if counts.left:
        by_type = ", ".join(f"{type_} {count}" for type_, count in sorted(counts.left.items()))
        print(
            f"wxb: --verify: {counted(counts.left.total(), 'spans')} still found in"
            f" {counts.documents_left} of {counted(counts.documents, 'documents')} ({by_type});"
            " a lower --threshold masks more",
            file=sys.stderr,
        )
