"""The blocks of `corpora`: the source, format and split of records."""

from collections import Counter
from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import unquote

from pydantic import Field, HttpUrl, PositiveInt, model_validator

from wxb.core.params.section import Commit, Label, Name, Section

Languages = Annotated[list[Label], Field(min_length=1)]


class Generate(Section):
    """The arguments of a generator module."""

    labelled: PositiveInt
    unlabelled: Annotated[int, Field(ge=0)] = 0
    languages: Languages


class Hub(Section):
    """A data set on the Hugging Face hub, pinned by revision."""

    repository: str
    revision: Commit
    files: Annotated[list[str], Field(min_length=1)]  # glob patterns inside the repository


class Download(Section):
    """A file on the web, pinned by its hash."""

    address: HttpUrl
    # Without it, the download fails and reports the hash of the file.
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    name: str | None = None  # of the file; default: the last part of the address's path

    @property
    def file(self) -> str:
        """The name of the file in data/raw/<corpus>."""
        return self.name or unquote((self.address.path or "").rsplit("/", 1)[-1])

    @model_validator(mode="after")
    def _refuse_logins_and_paths(self) -> Self:  # and hidden, empty or unprintable file names
        if self.address.username or self.address.password:
            raise ValueError("a login in `address` would be published; put it into ~/.netrc")
        is_hidden = self.file.startswith(".")  # readers skip hidden files
        if not self.file or is_hidden or not self.file.isprintable() or set(self.file) & {*"/\\"}:
            raise ValueError(f"expected a file name in `address` or `name`; found {self.file!r}")
        return self


class Fields(Section):
    """The names of a corpus for the fields of a record; None if it has no such field."""

    input: str = "input"
    language: str | None = "language"
    id: str | None = "id"


# The splits of every corpus, other files of its folder, and keys beside the counts of splits.
RESERVED = ("train", "valid", "test", "training", "profile", "rejects", "raw", "rejected")

Patterns = Annotated[list[str], Field(min_length=1)]
Share = Annotated[float, Field(gt=0, lt=1)]  # of all records


class SplitFiles(Section):
    """The files of each split, as glob patterns on paths inside the raw folder of the corpus."""

    train: Patterns
    valid: Patterns
    test: Patterns


class FurtherTestSet(Section):
    """A test set other than `test`: files, or whole values of a field, about a share of records."""

    by: str | None = None
    share: Share | None = None
    files: Patterns | None = None

    @model_validator(mode="after")
    def _by_field_or_files(self) -> Self:
        if (self.by is None) != (self.share is None) or (self.by is None) == (self.files is None):
            raise ValueError("give either both `by` and `share`, or `files`")
        return self


class Split(Section):
    """How records are divided into splits: by files, or by shares of groups.

    Records with the same value of the field `by` form a group; without it, each text is a group.
    """

    files: SplitFiles | None = None
    by: str | None = None
    test: Share | None = None
    valid: Share | None = None
    further: dict[Name, FurtherTestSet] | None = None
    max_records: dict[Name, PositiveInt] | None = None  # of sets of `files` other than train

    @property
    def test_sets(self) -> list[str]:
        """The names of the test sets, `test` first."""
        return ["test", *(self.further or {})]

    @property
    def file_patterns(self) -> dict[str, list[str]]:
        """The glob patterns of the splits that are defined by files."""
        patterns: dict[str, list[str]] = self.files.model_dump() if self.files else {}
        further = (self.further or {}).items()
        return patterns | {name: test_set.files for name, test_set in further if test_set.files}

    @property
    def held_out_fields(self) -> dict[str, tuple[str, float]]:
        """Field and share of each test set that is defined by the values of a field."""
        return {
            name: (test_set.by, test_set.share)
            for name, test_set in (self.further or {}).items()
            if test_set.by is not None and test_set.share is not None
        }

    @model_validator(mode="after")
    def _consistent(self) -> Self:  # either `files`, or shares below 1 in sum; unique names
        if self.files:
            if (self.by, self.test, self.valid) != (None, None, None):
                raise ValueError("`files` divide the records: leave `by`, `test` and `valid` out")
            if self.held_out_fields:
                name = next(iter(self.held_out_fields))
                raise ValueError(f"`files` divide the records: give {name!r} `files`, too")
        elif self.test is None or self.valid is None:
            raise ValueError("give either `files`, or both `test` and `valid`")
        elif sum([self.test, self.valid, *(s for _, s in self.held_out_fields.values())]) >= 1:
            shares = " + ".join(["test", "valid", *self.held_out_fields])
            raise ValueError(f"{shares} must stay below 1: the rest is for training")
        if unknown := {*(self.max_records or ())} - ({*self.file_patterns} - {"train"}):
            raise ValueError(f"max_records: {sorted(unknown)[0]!r} is no held-out set of `files`")
        if taken := _caseless_duplicate([*RESERVED, *(self.further or {})]):
            raise ValueError(f"a further test set cannot be called {taken!r}: the name is taken")
        return self


class Corpus(Section):
    """The source, format and split of raw records."""

    task: str
    path: str
    generate: Generate | None = None
    hub: Hub | None = None
    urls: Annotated[list[Download], Field(min_length=1)] | None = None
    fields: Fields = Fields()
    annotator: str | None = None  # whose labels count, if texts have several
    languages: Languages | None = None
    max_characters: PositiveInt = 20_000
    max_records: PositiveInt | None = None
    split: Split

    formats: ClassVar[tuple[str, ...]] = ()  # keys for other formats than `fields`
    format_hint: ClassVar[str] = ""  # end of the error for a folder without a supported file
    limit_key: ClassVar[str] = "max_characters"  # by which inputs are too long

    @property
    def format_key(self) -> str:
        """The key that defines how to read files: the first of `formats` in use, or `fields`."""
        return next((key for key in self.formats if getattr(self, key)), "fields")

    def reads(self, file: Path) -> bool:
        """Whether a file has records, for formats other than `fields`; all have by default."""
        return True

    @property
    def has_text_per_file(self) -> bool:
        """Whether each file is one text."""
        return False

    def advice(self, reason: str) -> str:
        """What to do if most records are rejected for `reason`, for an error message."""
        if reason == "too long":
            return f"raise `{self.limit_key}`"
        if reason == "near duplicate":
            return "add records that differ in more than digits and case"
        if reason in ("missing field", "wrong type", "not a record", "blank text"):
            return f"compare `{self.format_key}` of the corpus with the file"
        return "correct them in the file"

    @model_validator(mode="after")
    def _refuse_several_origins_and_equal_names(self) -> Self:
        origins = [name for name in ("generate", "hub", "urls") if getattr(self, name)]
        if len(origins) > 1:
            raise ValueError(f"a corpus has one origin; found {' and '.join(origins)}")
        if name := _caseless_duplicate([download.file for download in self.urls or ()]):
            raise ValueError(f"two of `urls` are called {name!r}; give one another `name`")
        return self


def _caseless_duplicate(names: list[str]) -> str | None:
    """The first name that occurs twice in any case, as on some file systems, in lower case."""
    counts = Counter(name.casefold() for name in names)
    return next((name for name, count in counts.items() if count > 1), None)
