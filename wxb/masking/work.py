"""Read documents in batches, edit them, and write them in their order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

from tqdm import tqdm

from wxb import WxbError
from wxb.core.files import create_private, publish, write_lock
from wxb.masking.documents import Document
from wxb.masking.edits import Edit
from wxb.masking.folders import Source, make_folders, permissions
from wxb.masking.sources import Layout, read_documents

if TYPE_CHECKING:
    from wxb.masking.mapping import Mapping

# A batch ends at one of these limits; all of it is in memory.
DOCUMENTS, CHARACTERS = 256, 100_000
# Output in memory that waits for its mapping to be saved, in bytes.
MAX_PENDING = 8_000_000


class Part(NamedTuple):
    """A document of a source with its number from 1, or None at the end of the file."""

    source: Source
    document: Document | None
    number: int = 0


Change = Callable[[Sequence[str]], list[list[Edit]]]
Emit = Callable[[Part, list[Edit]], bytes]


def read_parts(sources: Sequence[Source], layout: Layout) -> Iterator[Part]:
    """The documents of all sources; shows progress if standard error is a terminal."""
    size = sum(source.path.stat().st_size for source in sources if source.path) or None
    unit = "B" if size else "doc"
    with tqdm(
        total=size, unit=unit, unit_scale=True, disable=None, file=sys.stderr, leave=False
    ) as bar:
        for source in sources:
            with _open_input(source) as file:
                last = number = 0
                for document in read_documents(file, source.path, source.name, layout):
                    number += bool(document.text)
                    yield Part(source, document, number)
                    position = file.tell() if size and file.seekable() else number
                    bar.update(position - last)
                    last = position
            yield Part(source, None)


def with_one_end(stream: Iterable[Part]) -> Iterator[Part]:
    """The parts without the ends of files but the last, for one output of many files."""
    for part in stream:
        if part.document:
            yield part
    yield Part(part.source, None)


def _open_input(source: Source) -> AbstractContextManager[BinaryIO]:
    if source.path is None:
        return nullcontext(sys.stdin.buffer)
    try:
        return source.path.open("rb")
    except OSError as error:
        raise WxbError(f"{source.name}: cannot be read ({error.strerror})") from None


def batches(stream: Iterable[Part]) -> Iterator[list[Part]]:
    """Parts in lists of up to DOCUMENTS documents or about CHARACTERS characters."""
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
    """Edit all documents in batches, and write each after its placeholders are saved.

    Output is held back, up to MAX_PENDING bytes, to save the mapping less often. `change` returns
    the edits of a batch of texts, `emit` the bytes of a document.
    """
    pending: list[tuple[Source, bytes | None]] = []
    size = 0
    for batch in batches(stream):
        edits = iter(change([p.document.text for p in batch if p.document and p.document.text]))
        for part in batch:
            content = None
            if part.document:
                content = emit(part, next(edits) if part.document.text else [])
                size += len(content)
            pending.append((part.source, content))
        if mapping is None or not mapping.can_wait or size > MAX_PENDING:
            _write_pending(pending, sink, mapping)
            size = 0
    _write_pending(pending, sink, mapping)


def _write_pending(
    pending: list[tuple[Source, bytes | None]], sink: Sink, mapping: Mapping | None
) -> None:
    """Save the mapping, then write and clear pending output."""
    if mapping is not None:
        mapping.save()
    for source, content in pending:
        if content is None:
            sink.end(source)
        else:
            sink.write(source, content)
    sink.flush()
    pending.clear()


class Sink:
    """Writes to standard output, or to files that are published when they are complete.

    A context manager: after an error, incomplete files are dropped. Locks the output file or
    folder; raises WxbError if another process has locked it.
    """

    def __init__(self) -> None:
        self._folder = ExitStack()  # its lock, until the last file is published
        self._is_locked = False
        self._stack = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._folder, suppress(OSError):  # buffered bytes cannot be written to a full disk
            self._stack.__exit__(*error)

    def write(self, source: Source, content: bytes) -> None:
        """Write bytes to the output file of a source. Raises WxbError if it cannot be written."""
        if source.target is None:
            with standard_output() as file:
                file.write(content)
            return
        try:
            self._open(source, source.target).write(content)
        except OSError as error:
            raise _unwritable(source.target, error) from None

    def end(self, source: Source) -> None:
        """Publish the output file of a source. Raises WxbError if it cannot be written."""
        if source.target is None:
            return
        try:
            self._open(source, source.target)
            self._stack.close()
        except OSError as error:
            raise _unwritable(source.target, error) from None
        self._file = None

    def flush(self) -> None:
        """Flush standard output."""
        with standard_output() as file:
            file.flush()

    def _open(self, source: Source, target: Path) -> BinaryIO:
        if self._file is None:
            if source.folder:
                if not self._is_locked:
                    self._folder.enter_context(write_lock(source.folder.resolve()))
                    self._is_locked = True
                make_folders(source)
            (draft,) = self._stack.enter_context(publish(target))
            self._file = self._stack.enter_context(_create_draft(draft, source.mode, target))
        return self._file


def _create_draft(draft: Path, mode: int | None, target: Path) -> BinaryIO:
    """A new file with permissions; none that an existing target lacks."""
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
    """Standard output for bytes. Raises WxbError for write errors in the context."""
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise  # the reader has exited; typer then exits without a message
    except OSError as error:
        # Python would try to write buffered bytes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise WxbError(f"standard output: cannot be written ({error.strerror})") from None


class NullSink(Sink):
    """Writes nothing, for dry runs."""

    def write(self, source: Source, content: bytes) -> None:
        """Discard it."""

    def end(self, source: Source) -> None:
        """Discard it."""


def _unwritable(target: Path, error: OSError) -> WxbError:
    return WxbError(f"{target}: cannot be written ({error.strerror}); choose another --output")
