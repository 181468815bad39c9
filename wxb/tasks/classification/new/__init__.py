"""`wxb new corpus` for texts with a class, also without fields: fastText, a folder per class."""

from glob import escape

from wxb.tasks import recognition
from wxb.tasks.classification.reading import FASTTEXT
from wxb.tasks.recognition import Block, Files, FlagError, Flags, Records

UNLABELLED = ("unsup", "unlabeled", "unlabelled")  # names of folders of texts without a class


def recognize(files: Files, records: Records, flags: Flags) -> Block | None:
    """The block for records with a class, lines that begin with `__label__`, or a folder per class.

    With the flag `class-per-file`, each file has the records of a class. None for other files.
    """
    if "class-per-file" in flags:
        return _class_per_file(files, records, flags)
    if files.has_fields:
        return records.recognize(files, flags)
    split = {"by": None, **recognition.SHARES}
    if all(FASTTEXT.match(next(files.nonblank_lines(file))) for file in files.members):
        return {"format": "fasttext", "split": split}
    names = {file.parent.name for file in files.members if file.parent != files.path}
    classes = sorted(name for name in names if not recognition.is_named_as_split(name))
    if len(classes) < 2 or any(file.suffix not in ("", ".txt") for file in files.members):
        return None
    labels = {name: None if name.casefold() in UNLABELLED else name for name in classes}
    return {"format": "files", "classes": labels, "fields": {"label": None}, "split": split}


def _class_per_file(files: Files, records: Records, flags: Flags) -> Block:
    """The block for files of records, each with the records of a class."""
    update = {"forms": [["input"]], "fields": {"input": records.fields["input"]}}
    content = records.model_copy(update=update).recognize(files, flags)
    if content is None:
        raise FlagError(f"--input: found {files.summary()}\nName the field of the text")
    content["fields"]["label"] = None
    names = [file.name for file in files.members]
    return {**content, "classes": {escape(n): n.partition(".")[0].lower() for n in names}}
