"""Files in, files out: batches of documents, changed, and written in the order they came in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from tqdm import tqdm

from wxb.errors import WxbError
from wxb.files import publish
from wxb.masking.documents import Document
from wxb.masking.edits import Edit
from wxb.masking.sources import Layout, read

if TYPE_CHECKING:
    from wxb.masking.mapping import Mapping

# A batch is as many documents as make one of these; that much is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000
# Bytes that wait for their mapping to be saved.
HELD = 8_000_000


class Source(NamedTuple):
    """A file (None: standard input), its name in errors, and the file to write."""

    path: Path | None
    name: str
    target: Path | None  # None: standard output


class Part(NamedTuple):
    """A document of a source, the how manieth; or None for the end of its file."""

    source: Source
    document: Document | None
    number: int = 0


Change = Callable[[Sequence[str]], list[list[Edit]]]
Emit = Callable[[Part, list[Edit]], bytes]


def sources(given: Path, output: Path | None, *, one_output: bool = False) -> list[Source]:
    """What a file or folder holds to read, and where each is to be written.

    Files of a folder go to the same relative paths in `output`; hidden ones are left out. With
    `one_output`, all go to `output` (None: standard output). Raises WxbError where something would
    be written over what is read.
    """
    if not given.is_dir():
        target = file_to_write(output) if output else None
        if target and target.exists() and target.samefile(given):
            raise WxbError(f"{output}: is the input itself; choose another --output")
        return [Source(given, str(given), target)]
    if output is None and not one_output:
        raise WxbError(f"{given} is a folder; name one for what is made of it with --output")
    if output:
        inner, outer = given.resolve(), file_to_write(output) if one_output else output.resolve()
        if inner.is_relative_to(outer) or outer.is_relative_to(inner):
            raise WxbError(f"{output}: is in {given}, or holds it; choose a place apart from it")
    found = []
    for path in sorted(given.rglob("*")):
        relative = path.relative_to(given)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            target = output / relative if output and not one_output else output
            found.append(Source(path, str(path), target))
    if not found:
        raise WxbError(f"{given}: holds no files, or hidden ones only")
    return found


def file_to_write(output: Path) -> Path:
    """The file meant: of a link, what it points to. Raises WxbError where that is no plain file."""
    target = output.resolve()
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    return target


def parts(chosen: Sequence[Source], layout: Layout) -> Iterator[Part]:
    """The documents of all sources, with a progress bar on standard error if that is a terminal."""
    size = sum(source.path.stat().st_size for source in chosen if source.path) or None
    unit = "B" if size else "doc"
    with tqdm(
        total=size, unit=unit, unit_scale=True, disable=None, file=sys.stderr, leave=False
    ) as bar:
        for source in chosen:
            with _opened(source) as file:
                last = number = 0
                for document in read(file, source.path, source.name, layout):
                    number += bool(document.text)
                    yield Part(source, document, number)
                    here = file.tell() if size and file.seekable() else number
                    bar.update(here - last)
                    last = here
            yield Part(source, None)


def joined(stream: Iterable[Part]) -> Iterator[Part]:
    """The same with one end for all, as the parts of one output have."""
    for part in stream:
        if part.document:
            yield part
    yield Part(part.source, None)


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if source.path is None:
        return nullcontext(sys.stdin.buffer)
    try:
        return source.path.open("rb")
    except OSError as error:
        raise WxbError(f"{source.name}: cannot be read ({error.strerror})") from None


def batches(stream: Iterable[Part]) -> Iterator[list[Part]]:
    """Parts of so many documents or characters at a time."""
    batch: list[Part] = []
    documents = characters = 0
    for part in stream:
        batch.append(part)
        text = part.document.text if part.document else ""
        documents, characters = documents + 1, characters + len(text)
        if documents >= DOCUMENTS or characters >= CHARACTERS:
            yield batch
            batch, documents, characters = [], 0, 0
    if batch:
        yield batch


def process(
    stream: Iterable[Part], change: Change, emit: Emit, sink: Sink, mapping: Mapping | None = None
) -> None:
    """Change the texts of documents, and write each after the mapping that undoes it is saved."""
    held: list[tuple[Source, bytes | None]] = []
    size = 0
    for batch in batches(stream):
        edits = iter(change([p.document.text for p in batch if p.document and p.document.text]))
        for part in batch:
            content = None
            if part.document:
                content = emit(part, next(edits) if part.document.text else [])
                size += len(content)
            held.append((part.source, content))
        if mapping is None or not mapping.may_wait or size > HELD:
            _settle(held, sink, mapping)
            size = 0
    _settle(held, sink, mapping)


def _settle(held: list[tuple[Source, bytes | None]], sink: Sink, mapping: Mapping | None) -> None:
    if mapping is not None:
        mapping.save()
    for source, content in held:
        if content is None:
            sink.end(source)
        else:
            sink.write(source, content)
    sink.flush()
    held.clear()


class Sink:
    """Where results go: to standard output, or to files that appear whole when they end.

    A context: what has not ended when it is left by an error is never seen.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._target: Path | None = None
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def write(self, source: Source, content: bytes) -> None:
        """Write a part of a source's target."""
        if source.target is None:
            sys.stdout.buffer.write(content)
            return
        try:
            self._open(source.target).write(content)
        except OSError as error:
            raise _unwritable(source.target, error) from None

    def end(self, source: Source) -> None:
        """Publish a source's target."""
        if source.target is None:
            return
        try:
            self._open(source.target)
            self._stack.close()
        except OSError as error:
            raise _unwritable(source.target, error) from None
        self._target = self._file = None

    def flush(self) -> None:
        """Let readers of standard output have what was written."""
        sys.stdout.buffer.flush()

    def _open(self, target: Path) -> BinaryIO:
        if self._file is None or self._target != target:
            (draft,) = self._stack.enter_context(publish(target))
            self._file = self._stack.enter_context(draft.open("wb"))
            self._target = target
        return self._file


class Nowhere(Sink):
    """Nothing is written: a dry run."""

    def write(self, source: Source, content: bytes) -> None:
        """Let it go."""

    def end(self, source: Source) -> None:
        """Let it go."""


def _unwritable(target: Path, error: OSError) -> WxbError:
    return WxbError(f"{target}: cannot be written ({error.strerror}); choose another --output")
