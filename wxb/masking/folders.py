"""Files to read and the files to write for them; of a folder also what in it cannot be read."""

from __future__ import annotations

import os
import stat
import sys
from functools import reduce
from operator import and_
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from wxb import WxbError
from wxb.masking.sources import Layout, read


class Source(NamedTuple):
    """A file (None: standard input or a text), its name in errors, and the file to write."""

    path: Path | None
    name: str
    target: Path | None  # None: standard output
    mode: int | None = None  # permissions of the target; None: those of any new file
    folder: Path | None = None  # the output folder that the target is in


class Found(NamedTuple):
    """What is to be read, and a line for each file or subfolder that cannot be, with the reason."""

    sources: list[Source]
    unread: list[str]


def sources(given: Path, output: Path | None, *, one_output: bool = False) -> Found:
    """What a file or folder holds to read, and where each is to be written.

    Files of a folder go to the same relative paths in `output`; hidden ones are left out. With
    `one_output`, all go to `output` (None: standard output). A file gets the permissions of the one
    that it is made of; of several, those that all have. Raises WxbError where something would be
    written over what is read.
    """
    if not given.is_dir():
        target = file_to_write(output) if output else None
        if target and target.exists() and target.samefile(given):
            raise WxbError(f"{output}: is the input itself; choose another --output")
        mode = permissions(given) if given.is_file() else None
        return Found([Source(given, str(given), target, mode)], [])
    if output is None and not one_output:
        raise WxbError(f"{given} is a folder; name one for what is made of it with --output")
    if output:
        inner, outer = given.resolve(), file_to_write(output) if one_output else output.resolve()
        if inner.is_relative_to(outer) or outer.is_relative_to(inner):
            raise WxbError(f"{output}: is in {given}, or holds it; choose a place apart from it")
    files, unread = _listed(given)
    if not files:
        raise WxbError("\n  ".join([f"{given}: holds no files, or hidden ones only", *unread]))
    if one_output or output is None:
        common = reduce(and_, files.values())
        return Found([Source(path, str(path), output, common) for path in files], unread)
    found = [
        Source(path, str(path), output / path.relative_to(given), mode, output)
        for path, mode in files.items()
    ]
    return Found(found, unread)


def readable(found: Found, layout: Layout, *, skip: bool) -> Found:
    """Read files once, before any is written, to see which are UTF-8 and of their format.

    With `skip`, others join what is unread. Without, or where none is left, raises WxbError that
    names them all.
    """
    good: list[Source] = []
    unread = [*found.unread]
    for source in tqdm(
        found.sources, "check", unit="file", disable=None, file=sys.stderr, leave=False
    ):
        assert source.path is not None
        try:
            with source.path.open("rb") as file:
                for _ in read(file, source.path, source.name, layout):
                    pass
            good.append(source)
        except OSError as error:
            unread.append(_fault(source.path, error))
        except WxbError as error:
            unread.append(str(error))
    if len(good) < len(found.sources) and not (skip and good):
        hint = ", or pass them over with --skip-unreadable" if good else ""
        told = [f"nothing is written, as {len(unread)} cannot be read; mend them{hint}:", *unread]
        raise WxbError("\n  ".join(told))
    return Found(good, unread)


def file_to_write(output: Path) -> Path:
    """The file meant: of a link, what it points to. Raises WxbError where that is no plain file."""
    target = output.resolve()
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    return target


def make_folders(source: Source) -> None:
    """Make the folders that a target of `sources` is in, as open as those that its file is in."""
    assert source.path is not None
    assert source.target is not None
    assert source.folder is not None
    depth = len(source.target.relative_to(source.folder).parents)
    both = zip(source.target.parents, source.path.parents, strict=False)
    for made, like in reversed([*both][:depth]):
        if not made.exists():
            made.mkdir(parents=True)
            made.chmod(permissions(like) | stat.S_IRWXU)


def _listed(folder: Path) -> tuple[dict[Path, int], list[str]]:
    """The files of a folder with their permissions, and what cannot be read; both sorted."""
    files: dict[Path, int] = {}
    errors: list[OSError] = []
    unread: dict[Path, str] = {}
    for place, inner, names in os.walk(folder, onerror=errors.append):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for path in [Path(place, name) for name in names if not name.startswith(".")]:
            try:
                if path.is_file():
                    files[path] = permissions(path)
            except OSError as error:
                unread[path] = _fault(path, error)
    unread |= {Path(error.filename): _fault(error.filename, error) for error in errors}
    return dict(sorted(files.items())), [fault for _, fault in sorted(unread.items())]


def _fault(path: str | Path, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror})"


def permissions(path: Path) -> int:
    """Who may read, write and execute a file, as `chmod` has it."""
    return path.stat().st_mode & 0o777
