"""`wxb new corpus` for texts with a class, also without fields: fastText, a folder per class."""

from glob import escape

from wxb.tasks import recognition
from wxb.tasks.classification.reading import FASTTEXT
from wxb.tasks.recognition import Block, Files, FlagError, Flags, Records

MIN_RECORDS = 20  # of which fewer than half may be classes
TEXTS = {"", ".txt"}  # suffixes
UNLABELLED = ("unsup", "unlabeled", "unlabelled")  # names of folders of texts without a class


def recognize(files: Files, records: Records, flags: Flags) -> Block | None:
    """The block for records with a class, lines that begin with `__label__`, or a folder per class.

    With the flag `class-per-file`, each file has the records of a class. None for other files.
    Raises FlagError for a field of numbers or texts that hardly repeat.
    """
    if "class-per-file" in flags:
        return _class_per_file(files, records, flags)
    if files.has_fields:
        content = records.recognize(files, flags)
        labels = content and [str(row.get(content["fields"]["label"])) for row in files.rows]
        if labels and len(labels) > MIN_RECORDS and 2 * len({*labels}) > len(labels):
            raise FlagError(
                f"--gold: found {len({*labels}):,} different classes in {len(labels):,} records,"
                f" such as {labels[0]!r}; name a field whose values repeat"
            )
        return content
    split = {"by": None, **recognition.SHARES}
    names = {file.parent.name for file in files.members if file.parent != files.path}
    classes = sorted(name for name in names if not recognition.is_named_as_split(name))
    paths = [path for path in files.path.glob("*/**/*") if path.parent.name in classes]
    if len(classes) > 1 and not {path.suffix for path in paths if path.is_file()} - TEXTS:
        labels = {name: None if name.casefold() in UNLABELLED else name for name in classes}
        return {"format": "files", "classes": labels, "fields": {"label": None}, "split": split}
    if all(FASTTEXT.match(next(files.nonblank_lines(file))) for file in files.members):
        return {"format": "fasttext", "split": split}
    return None


def _class_per_file(files: Files, records: Records, flags: Flags) -> Block:
    """The block for files of records, each with the records of a class."""
    update = {"forms": [["input"]], "fields": {"input": records.fields["input"]}}
    content = records.model_copy(update=update).recognize(files, flags)
    if content is None:
        raise FlagError(f"--input: found {files.summary()}\nName the field of the text")
    content["fields"]["label"] = None
    names = [file.name for file in files.members]
    return {**content, "classes": {escape(n): n.partition(".")[0].lower() for n in names}}
