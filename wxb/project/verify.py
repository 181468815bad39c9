"""The command `wxb verify`: compare the bytes of all outputs, and of DVC's cache, with dvc.lock.

DVC does not read a file again whose size, time and inode it knows, nor a cache object of mode 0444.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from wxb.core.errors import counted
from wxb.core.files import publish
from wxb.project import engines, revisions, status

OBJECT = re.compile(r"[0-9a-f]{32}(\.dir)?")
DIRECTORY = ".dir"  # the suffix of objects that list the files of a folder
SOURCE = "a source is not repaired; restore it"


class Fault(NamedTuple):
    """A file whose bytes are not those of dvc.lock, or of its name in DVC's cache.

    `kind`: altered, missing or unexpected. `remedy`: what was done about it. `is_restored`: the
    file is now as it should be.
    """

    kind: str
    path: Path  # relative to the project, if it is inside
    remedy: str = ""
    is_restored: bool = False


def verify_command(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="restore outputs from a copy; without one, make stages stale"
        ),
    ] = False,
) -> None:
    """Hash all outputs, their sources and DVC's cache, and compare them with dvc.lock.

    Names each file that is altered, missing or unexpected. DVC itself does not read a file again
    whose time is unchanged. Exit code 1 if a file is not as it should be.

    Example: wxb verify --repair
    """
    files, faults = verify(repair)
    for fault in faults:
        print(f"{fault.kind}: {fault.path}" + (f" ({fault.remedy})" if fault.remedy else ""))
    print(f"{counted(files, 'files')} hashed, {counted(len(faults), 'faults')}")
    if not all(fault.is_restored for fault in faults):
        raise typer.Exit(1)


def verify(repair: bool = False) -> tuple[int, list[Fault]]:
    """Hash the outputs and sources of all stages in dvc.lock, and DVC's cache.

    Returns the number of files and the faults. A source that DVC knows to have changed is no fault:
    its stages are stale. An output that workspace, cache and git's index lack is none: a clone has
    no models.

    `repair` restores outputs from a copy with the right hash: in the workspace, the cache, or
    git's index. Without a copy it removes the cache object and links to it, or sets the time of the
    file, so that DVC runs the stage again. It writes no source and removes no other file. Raises
    WxbError for outputs below a linked folder, and PlanError if a run is active or DVC fails.
    """
    with engines.exclude_runs("nothing was verified") as repo:
        if repo is None:
            raise engines.unreadable_error(f"{Path.cwd()} has no folder .dvc")
        status.require_valid_links(repo.index.stages, folders_only=True)
        verification = _Verification(repo, repair)
        faults = [*verification.faults()]
        return len(verification.hashes), faults


class _Verification:
    """Reads all outputs and objects first, so that each repair can use any copy."""

    def __init__(self, repo: Any, repairs: bool) -> None:
        self.repo, self.repairs = repo, repairs
        self.hashes: dict[Path, str] = {}
        self.copies: dict[str, Path | bytes] = {}  # content by hash
        self.outs = [out for stage in repo.index.stages for out in stage.outs if out.hash_info]
        self.objects = {
            path.parent.name + path.name: path
            for path in sorted(Path(repo.cache.local.path).glob("??/*"))
            if OBJECT.fullmatch(path.parent.name + path.name)  # else a killed run left it
        }
        for oid, path in self.objects.items():
            if self._hash_file(path) == oid.removesuffix(DIRECTORY):
                self.copies[oid] = path
        for out in self.outs:
            for file in self._current_files(out):
                self.copies.setdefault(self._hash_file(file), file)
            if out.hash_info.isdir and out.exists:
                tree = self._current_tree(out)
                self.copies.setdefault(str(tree.oid), tree.as_bytes())

    def faults(self) -> Iterator[Fault]:
        """Yield each fault, after any repair. Sources and unexpected files stay as they are."""
        for oid, path in self.objects.items():
            if self._hash_file(path) != oid.removesuffix(DIRECTORY):
                yield self._repair("altered", path, oid)
        for out in self.outs:
            yield from self._check_output(out)
        outs = [Path(out.fs_path) for out in self.outs]
        deps = [dep for stage in self.repo.index.stages for dep in stage.deps]
        for path, dep in {Path(d.fs_path): d for d in deps if d.hash_info.name == "md5"}.items():
            if any(path.is_relative_to(out) or out.is_relative_to(path) for out in outs):
                continue  # it is an output, or has some
            if path.exists() and not dep.workspace_status():  # else DVC knows that it changed
                digest = self._current_tree(dep).oid if path.is_dir() else self._hash_file(path)
                if digest != dep.hash_info.value:
                    yield Fault("altered", _relative(path), SOURCE * self.repairs)

    def _check_output(self, out: Any) -> Iterator[Fault]:
        """Yield the faults of an output that is here, in the cache or in git, after any repair.

        An object that the cache lacks is a fault, too. Unexpected files are listed and kept.
        """
        path, oid = Path(out.fs_path), str(out.hash_info.value)
        is_absent = not os.path.lexists(path) and oid not in self.objects
        if is_absent and _index_content(path, oid) is None:
            return
        expected = {path: oid}
        if out.hash_info.isdir:
            listing = self.copies.get(oid)
            if listing is None:  # its files are unknown
                yield self._repair("altered" if path.exists() else "missing", path, oid)
                return
            text = listing if isinstance(listing, bytes) else listing.read_bytes()
            expected = {path / entry["relpath"]: entry["md5"] for entry in json.loads(text)}
        for needed in {oid, *expected.values()} if out.use_cache else ():
            if needed not in self.objects:
                target = self.objects[needed] = Path(self.repo.cache.local.oid_to_path(needed))
                yield self._repair("missing", target, needed)
        for file, digest in expected.items():
            if not file.is_file():
                yield self._repair("missing", file, digest)
            elif self._hash_file(file) != digest:
                yield self._repair("altered", file, digest)
        for file in self._current_files(out):
            if file not in expected:
                yield Fault("unexpected", _relative(file), "kept" * self.repairs)

    def _repair(self, kind: str, path: Path, oid: str) -> Fault:
        """The fault of a file. If `repairs`, restore it, or without a copy, touch or delete it."""
        if not self.repairs:
            return Fault(kind, _relative(path))
        is_object = self.objects.get(oid) == path  # git has none, and refuses other folders
        content = self.copies.get(oid) or (None if is_object else _index_content(path, oid))
        if content is not None and not path.is_dir():
            with publish(path) as (draft,):
                if isinstance(content, Path):
                    shutil.copyfile(content, draft)
                else:
                    draft.write_bytes(content)
            if is_object:
                self.repo.cache.local.protect(str(path))
            return Fault(kind, _relative(path), "restored from a copy", True)
        if is_object or (path.is_symlink() and not path.exists()):
            path.unlink(missing_ok=True)
        else:
            for file in [path, *path.rglob("*")] if path.exists() else ():
                if file.exists():
                    os.utime(file)  # so that DVC reads it
                else:
                    file.unlink()  # a link to an object that the cache lacks
        return Fault(kind, _relative(path), "no copy; its stage is stale now")

    def _current_files(self, entry: Any) -> list[Path]:
        """The existing files of an output or dependency that DVC does not ignore."""
        path = entry.fs_path
        files = self.repo.dvcignore.find(entry.fs, path) if Path(path).is_dir() else [path]
        return [Path(file) for file in files if Path(file).exists()]  # no link without a target

    def _current_tree(self, entry: Any) -> Any:
        """DVC's tree of the current files of an output or dependency, with its hash as `oid`."""
        from dvc_data.hashfile.hash_info import HashInfo
        from dvc_data.hashfile.tree import Tree

        tree = Tree()
        for file in self._current_files(entry):
            key = file.relative_to(entry.fs_path).parts
            tree.add(key, None, HashInfo("md5", self._hash_file(file)))
        tree.digest()
        return tree

    def _hash_file(self, path: Path) -> str:  # MD5, as DVC computes it; each file is read once
        from dvc_data.hashfile.hash import file_md5

        if path not in self.hashes:
            self.hashes[path] = file_md5(str(path))
        return self.hashes[path]


def _index_content(path: Path, oid: str) -> bytes | None:
    """The content of a file in git's index if its MD5 is `oid`, else None."""
    name = str(_relative(path))
    content = (revisions.index().read(name) if revisions.tracked(name) else None) or b""
    return content if hashlib.md5(content, usedforsecurity=False).hexdigest() == oid else None


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
