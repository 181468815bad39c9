"""Files in, files out: batches of documents, changed, and written in the order they came in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

from tqdm import tqdm

from wxb import WxbError
from wxb.core.files import alone, create_private, publish
from wxb.masking.documents import Document
from wxb.masking.edits import Edit
from wxb.masking.folders import Source, make_folders, permissions
from wxb.masking.sources import Layout, read

if TYPE_CHECKING:
    from wxb.masking.mapping import Mapping

# A batch is as many documents as make one of these; that much is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000
# Bytes that wait for their mapping to be saved.
HELD = 8_000_000


class Part(NamedTuple):
    """A document of a source, the how manieth; or None for the end of its file."""

    source: Source
    document: Document | None
    number: int = 0


Change = Callable[[Sequence[str]], list[list[Edit]]]
Emit = Callable[[Part, list[Edit]], bytes]


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

    A context: what has not ended when it is left by an error is never seen. Raises WxbError where
    another process writes the same file or into the same folder.
    """

    def __init__(self) -> None:
        self._folder = ExitStack()  # held until the last of its files has ended
        self._held = False
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._folder, suppress(OSError):  # a full disk takes nothing of what is buffered
            self._stack.__exit__(*error)

    def write(self, source: Source, content: bytes) -> None:
        """Write a part of a source's target."""
        if source.target is None:
            with standard_output() as file:
                file.write(content)
            return
        try:
            self._open(source, source.target).write(content)
        except OSError as error:
            raise _unwritable(source.target, error) from None

    def end(self, source: Source) -> None:
        """Publish a source's target."""
        if source.target is None:
            return
        try:
            self._open(source, source.target)
            self._stack.close()
        except OSError as error:
            raise _unwritable(source.target, error) from None
        self._file = None

    def flush(self) -> None:
        """Let readers of standard output have what was written."""
        with standard_output() as file:
            file.flush()

    def _open(self, source: Source, target: Path) -> BinaryIO:
        if self._file is None:
            if source.folder:
                if not self._held:
                    self._folder.enter_context(alone(source.folder.resolve()))
                    self._held = True
                make_folders(source)
            (draft,) = self._stack.enter_context(publish(target))
            self._file = self._stack.enter_context(_created(draft, source.mode, target))
        return self._file


def _created(draft: Path, mode: int | None, target: Path) -> BinaryIO:
    """A new file with permissions, of which those remain that the file in its place has."""
    if target.exists():
        old = permissions(target)
        mode = old if mode is None else old & mode
    if mode is None:
        return draft.open("wb")
    file = create_private(draft)
    os.fchmod(file.fileno(), mode)
    return file


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """What bytes are written to. Raises WxbError where that cannot be done."""
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise  # its reader left; typer ends quietly
    except OSError as error:
        # What is buffered would be tried again, and fail again, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise WxbError(f"standard output: cannot be written ({error.strerror})") from None


class Nowhere(Sink):
    """Nothing is written: a dry run."""

    def write(self, source: Source, content: bytes) -> None:
        """Let it go."""

    def end(self, source: Source) -> None:
        """Let it go."""


def _unwritable(target: Path, error: OSError) -> WxbError:
    return WxbError(f"{target}: cannot be written ({error.strerror}); choose another --output")
