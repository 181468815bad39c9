"""The input and output files of a command, and input files that cannot be read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations, product
from operator import and_
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from wxb import WxbError
from wxb.masking.sources import Layout, read_documents


class Source(NamedTuple):
    """An input file (None: standard input or a text), its name in errors, and its output file."""

    path: Path | None
    name: str
    target: Path | None  # None: standard output
    mode: int | None = None  # permissions of the target; None: those of any new file
    folder: Path | None = None  # the output folder


class Inputs(NamedTuple):
    """The files to read, and an error line for each file or subfolder that cannot be read."""

    sources: list[Source]
    unreadable: list[str]


class Collision(NamedTuple):
    """Two options of a call, and their paths that are one file or lie in one another."""

    option: str
    path: Path
    other_option: str
    other_path: Path


def find_collision(paths: Mapping[str, Sequence[Path]]) -> Collision | None:
    """The first collision between the paths of two options, if there is one.

    Paths are compared with links resolved. Two paths of one file (hard links) collide too.
    """
    for (option, own), (other_option, others) in combinations(paths.items(), 2):
        for path, other in product(own, others):
            first, second = path.resolve(), other.resolve()
            if (
                first.is_relative_to(second)
                or second.is_relative_to(first)
                or (path.exists() and other.exists() and path.samefile(other))
            ):
                return Collision(option, path, other_option, other)
    return None


def find_inputs(path: Path, output: Path | None, *, one_output: bool = False) -> Inputs:
    """The files at a path, each with its output file; hidden files are left out.

    Files of a folder have the same relative path in `output`. With `one_output`, or without
    `output`, all have one output file (None: standard output). Outputs get the permissions of
    their input, or those that all inputs share.
    """
    if not path.is_dir():
        target = resolve_output(output) if output else None
        mode = permissions(path) if path.is_file() else None
        return Inputs([Source(path, str(path), target, mode)], [])
    if output and one_output:
        output = resolve_output(output)
    files, unreadable = list_files(path)
    if not files:
        raise WxbError("\n  ".join([f"{path}: has no files, or only hidden ones", *unreadable]))
    if one_output or output is None:
        shared = reduce(and_, files.values())
        return Inputs([Source(file, str(file), output, shared) for file in files], unreadable)
    sources = [
        Source(file, str(file), output / file.relative_to(path), mode, output)
        for file, mode in files.items()
    ]
    return Inputs(sources, unreadable)


def check_inputs(inputs: Inputs, layout: Layout, *, skip: bool) -> Inputs:
    """Read all files once, and return the inputs with those that cannot be read set apart.

    These are files that are not UTF-8 or not in their format. Without `skip`, or if no file is
    left, raises WxbError with all of them.
    """
    good: list[Source] = []
    unreadable = [*inputs.unreadable]
    sources, is_one = inputs.sources, len(inputs.sources) == 1
    for source in tqdm(
        sources, "check", unit="file", disable=is_one or None, file=sys.stderr, leave=False
    ):
        assert source.path is not None
        try:
            with source.path.open("rb") as file:
                for _ in read_documents(file, source.path, source.name, layout):
                    pass
            good.append(source)
        except OSError as error:
            unreadable.append(_error_line(source.path, error))
        except WxbError as error:
            unreadable.append(str(error))
    if len(good) < len(sources) and not (skip and good):
        if is_one and sources[0].folder is None and len(unreadable) == 1:
            raise WxbError(unreadable[0])
        hint = ", or skip them with --skip-unreadable" if good else ""
        title = f"nothing is written, as {len(unreadable)} cannot be read; repair them{hint}:"
        raise WxbError("\n  ".join([title, *unreadable]))
    return Inputs(good, unreadable)


def resolve_output(output: Path) -> Path:
    """The absolute path of an output file, links resolved. Raises WxbError for folders, devices."""
    target = output.resolve()
    if target.exists() and not target.is_file():
        raise WxbError(f"{output}: found a folder or device; expected a file to write or replace")
    return target


def make_folders(source: Source) -> None:
    """Create the folders of an output file, with the permissions of those of its input."""
    assert source.path is not None
    assert source.target is not None
    assert source.folder is not None
    depth = len(source.target.relative_to(source.folder).parents)
    pairs = zip(source.target.parents, source.path.parents, strict=False)
    for folder, model in reversed([*pairs][:depth]):
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(permissions(model) | stat.S_IRWXU)


def list_files(folder: Path) -> tuple[dict[Path, int], list[str]]:
    """The visible files below a folder with their permissions, and error lines; both sorted."""
    files: dict[Path, int] = {}
    errors: list[OSError] = []
    unreadable: dict[Path, str] = {}
    for parent, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in [Path(parent, name) for name in names if not name.startswith(".")]:
            try:
                if path.is_file():
                    files[path] = permissions(path)
            except OSError as error:
                unreadable[path] = _error_line(path, error)
    unreadable |= {Path(error.filename): _error_line(error.filename, error) for error in errors}
    return dict(sorted(files.items())), [line for _, line in sorted(unreadable.items())]


def _error_line(path: str | Path, error: OSError) -> str:
    return f"{path}: cannot be read ({error.strerror})"


def permissions(path: Path) -> int:
    """The permission bits of a file, as `chmod` takes them."""
    return path.stat().st_mode & 0o777
