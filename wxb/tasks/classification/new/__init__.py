"""`wxb new corpus` for texts with a class, also without fields: fastText, a folder per class."""

import re
from glob import escape
from pathlib import Path

from wxb.corpora.adapters import CONTROLS
from wxb.tasks import recognition
from wxb.tasks.classification.reading import FASTTEXT
from wxb.tasks.recognition import Block, FieldNames, Files, FlagError, Flags

MIN_RECORDS = 5  # of more, fewer than half may be classes
TAG = re.compile(r"O|[BI]-.+")
ENDS = ("start", "end", "startoffset", "endoffset", "startposition", "endposition", "begin")
TEXTS = {"", ".txt"}  # suffixes
UNLABELLED = ("unsup", "unlabeled", "unlabelled")  # names of folders of texts without a class


def recognize(files: Files, field_names: FieldNames, flags: Flags) -> Block | None:
    """The block for records with a class, lines with `__label__`, or a folder of texts per class.

    With the flag `class-per-file`, each file has the records of a class. A folder in UNLABELLED is
    no class, nor are folders that are all named as splits. None for other files, and for a token
    per row. Raises FlagError if a flag must decide, as for a row per span or for labels that hardly
    repeat, and if only some folders are named as splits.
    """
    if "class-per-file" in flags:
        return _class_per_file(files, field_names, flags)
    if files.has_fields:
        content = field_names.recognize(files, flags)
        controls = sorted({name for row in files.rows for name in row.get(CONTROLS) or ()})
        if content and len(controls) > 1:
            raise FlagError(
                f"--gold: the choices {' and '.join(controls)} have classes; export JSON-MIN"
                " instead, which has a field for each, and name one"
            )
        ends = recognition.matching_fields(recognition.fields_of(files.rows), ENDS)
        if content and len(ends) > 1 and "gold" not in flags:
            raise FlagError(
                f"--gold: found a row per span ({', '.join(ends)}); write a record per text with a"
                " list of spans, or name the field of classes"
            )
        labels = content and [str(row.get(content["fields"]["label"])) for row in files.rows]
        if labels and all(map(TAG.fullmatch, labels)) and any(x.startswith("B-") for x in labels):
            return None  # a token a row
        names, answers = {*(labels or ())} - {"None"}, [row.get("answer") for row in files.rows]
        if "reject" in answers and len(names) == 1:  # of Prodigy
            raise FlagError(f"--gold: texts reject the only class, {min(names)}; name answer")
        if labels and len(labels) > MIN_RECORDS and 2 * len({*labels}) > len(labels):
            raise FlagError(
                f"--gold: found {len({*labels}):,} different classes in {len(labels):,} records,"
                f" such as {labels[0]!r}; name a field whose values repeat"
            )
        return content
    split = {"by": None, **recognition.SHARES}
    parents = {file.parent for file in files.members if file.parent != files.path}
    leaves = {folder for folder in parents if not any(map(Path.is_dir, folder.iterdir()))}
    classes = sorted({folder.name for folder in leaves})
    paths = [path for path in files.path.glob("*/**/*") if path.parent.name in classes]
    if all(map(recognition.is_named_as_split, classes)):
        classes = []  # splits, such as of files in fastText's format
    if len(classes) > 1 and not {path.suffix for path in paths if path.is_file()} - TEXTS:
        if unclear := [*filter(recognition.is_named_as_split, classes)]:
            raise FlagError(f"{unclear[0]}/ is named as a split, and is a class here; rename it")
        labels = {name: None if name.casefold() in UNLABELLED else name for name in classes}
        return {"format": "files", "classes": labels, "fields": {"label": None}, "split": split}
    if all(FASTTEXT.match(next(files.nonblank_lines(file))) for file in files.members):
        return {"format": "fasttext", "split": split}
    return None


def _class_per_file(files: Files, field_names: FieldNames, flags: Flags) -> Block:
    """The block for a class per file: its lower-case name up to a dot. FlagError: no text field."""
    update = {"forms": [["input"]], "fields": {"input": field_names.fields["input"]}}
    content = field_names.model_copy(update=update).recognize(files, flags)
    if content is None:
        raise FlagError(f"--input: found {files.summary()}\nName the field of the text")
    content["fields"]["label"] = None
    names = [file.name for file in files.members]
    return {**content, "classes": {escape(n): n.partition(".")[0].lower() for n in names}}
