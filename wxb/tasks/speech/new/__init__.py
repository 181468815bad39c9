"""`wxb new corpus` for a folder of recordings with their transcripts."""

from __future__ import annotations

from wxb.tasks.recognition import SHARES, Content, Files, Flags, Records, fields_of
from wxb.tasks.speech.record.audio import SUFFIXES


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for a folder with recordings and one or more tables; None for other files.

    `manifest` is the only table with transcripts of several. A table without a header, such as
    LJSpeech's, has the names of recordings first and their transcripts last.
    """
    paths = files.path.rglob("*") if files.path.is_dir() else ()
    names = {path.stem for path in paths if path.suffix.lower() in SUFFIXES}
    if not names:
        return None
    if len(files.members) == 1 and not files.columns:
        cells = [line.strip().split("|") for line in files.lines(files.members[0])]
        if {len(row) for row in cells} in ({2}, {3}) and {row[0] for row in cells} <= names:
            columns = ("id", "sentence", "normalized")[: len(cells[0])]
            fields = {"input": "path", "id": "id", "sentence": columns[-1]}
            split = {"by": None, **SHARES}
            return {"columns": [*columns], "fields": fields, "split": split}
    content = records.recognize(files, flags)
    if content is None or len(files.members) == 1:
        return content
    sentence = content["fields"]["sentence"]
    tables = [Files(file, (file,)) for file in files.members]
    first = [table for table in tables if sentence in fields_of(table.rows)]
    if len(first) == 1 and (content := records.recognize(first[0], flags)):
        content = {**content, "manifest": first[0].path.name}
    return content
