"""`wxb new corpus` for a folder of recordings with their transcripts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from wxb.tasks import recognition
from wxb.tasks.recognition import Block, FieldNames, Files, FlagError, Flags, Row, fields_of
from wxb.tasks.speech.record.audio import SUFFIXES


def recognize(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block for a folder with recordings and one or more tables; None for other files.

    The block names `manifest` if just one of several tables has transcripts. A table without a
    header, such as LJSpeech's, has the names of recordings first and their transcripts last. Parts
    of a recording are one group by default. Raises FlagError if values repeat in a table without a
    header, if paths begin with splits, and if fields of seconds, paths or transcripts are unknown.
    """
    paths = files.path.rglob("*") if files.path.is_dir() else ()
    audio = [path for path in paths if path.suffix.lower() in SUFFIXES]
    names = {name for path in audio for name in (path.name, path.stem)}
    if not names:
        return None
    if columns := _columns_without_header(files, names):
        content = field_names.recognize(replace(files, columns=columns), flags)
        return content and {**content, "manifest": files.members[0].name}
    content = field_names.recognize(files, flags)
    if content is None:
        raise FlagError(
            f"--audio and --gold: found recordings, and {files.summary()}\nName the fields of both,"
            " or --columns id,sentence; or write transcripts.csv with the header path,sentence"
        )
    used, tables = content["fields"], [replace(files, members=(file,)) for file in files.members]
    for table in tables:
        _check_rows(table.rows, used, flags)
    first = [table for table in tables if used["sentence"] in fields_of(table.rows)]
    needs_manifest = len(first) == 1 and (len(tables) > 1 or files.columns)
    if needs_manifest and (content := field_names.recognize(first[0], flags)):
        content = {**content, "manifest": first[0].members[0].name}
    if "start" in used and content and content["split"]["by"] is None and "group" not in flags:
        content["split"]["by"] = used.get("input")  # parts of a recording stay in one split
    return content


def _columns_without_header(files: Files, recordings: set[str]) -> tuple[str, ...]:
    """The columns of a single `|` table of `recordings`, else (); FlagError if values repeat."""
    if len(files.members) != 1 or files.columns:
        return ()
    rows = [line.strip().split("|") for line in files.nonblank_lines(files.members[0])]
    widths = {len(row) for row in rows}
    if widths not in ({2}, {3}) or not {PurePath(row[0]).name for row in rows} <= recordings:
        return ()
    if any(2 * len({*column}) < len(rows) for column in zip(*rows, strict=True)):
        shown = "|".join(rows[0])
        raise FlagError(f"--columns: found {shown!r}; name them: id, speaker, sentence")
    return ("id", "original", "sentence") if widths == {3} else ("id", "sentence")


def _check_rows(rows: Sequence[Row], fields: Mapping[str, str], flags: Flags) -> None:
    """Raise FlagError if paths begin with splits without `group`, or repeat without `start`."""
    paths = {str(r.get(fields.get("input", "")) or r.get(fields.get("id", ""))) for r in rows}
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    splits = sorted(filter(recognition.is_named_as_split, folders))
    if len(splits) > 1 and "group" not in flags:
        raise FlagError(
            f"--group: paths begin with the splits {', '.join(splits)}; write the rows of each to"
            " its own file, such as train.csv, or ignore them with -"
        )
    others = [name for name in fields_of(rows) if name not in fields.values()]
    numbers = [n for n in others if str(rows[0].get(n)).replace(".", "", 1).isdigit()]
    if "start" not in fields and numbers and len(rows) > 1.5 * len(paths):
        raise FlagError(
            f"--start and --end: {len(rows):,} rows name {len(paths):,} recordings; name the fields"
            f" of their seconds, among {', '.join(map(repr, numbers))}; save any channels as files"
        )
