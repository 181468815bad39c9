"""The command `dvc` with atomic and faster writes: `python -m wxb.project.dvc repro`.

DVC rewrites its rwlock and dvc.lock in place, so a signal or a full disk at that moment damages
them. Both are written through `open` of one class, which DVC has no setting for.

For each stage, DVC parses dvc.lock twice and writes all of it, which takes two thirds of its time
with 60 stages. Here, it parses and writes only the blocks of the stages that it needs.
"""

from __future__ import annotations

import atexit
import gc
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from wxb.core.files import publish
from wxb.project.dag import LOCKFILE
from wxb.runtime.engine import RWLOCK

if TYPE_CHECKING:
    from dvc.dvcfile import Lockfile
    from dvc.stage import PipelineStage

# The first lines of dvc.lock, and those of a stage with its name.
START = "schema: '2.0'\nstages:\n"
BLOCK = re.compile(r"^  ([\w@.-]+):\n(?:(?:   .*)?\n)*", re.MULTILINE)


def write_atomically() -> None:
    """Make DVC write its rwlock and dvc.lock atomically in this process."""
    from dvc_objects.fs.local import FsspecLocalFileSystem

    open_in_place = FsspecLocalFileSystem.open

    def open_atomically(fs: Any, path: Any, mode: str = "r", **kwargs: Any) -> Any:
        if "w" in mode and Path(path).name in (LOCKFILE.name, RWLOCK.name):
            return _draft(Path(path))
        return open_in_place(fs, path, mode=mode, **kwargs)

    if open_in_place.__module__ != __name__:
        setattr(FsspecLocalFileSystem, "open", open_atomically)  # noqa: B010


def split_lockfile() -> None:
    """Make DVC parse and write only the blocks of dvc.lock that it needs; same bytes as before."""
    from dvc.dvcfile import Lockfile, logger
    from dvc.stage.serialize import to_lockfile
    from dvc.utils.serialize import dumps_yaml

    dump_all, load_all = Lockfile.dump_stages, Lockfile._load_yaml

    def dump_stages(lockfile: Lockfile, stages: Iterable[PipelineStage], **options: Any) -> None:
        path = Path(lockfile.path)
        text = path.read_text(encoding="utf-8") if path.exists() else START
        changed = {}
        for stage in stages:
            block = dumps_yaml({"stages": to_lockfile(stage, **options)})
            changed[stage.name] = block.removeprefix("stages:\n")
        blocks = _blocks(text)
        new = START + "".join(((blocks or {}) | changed).values())
        if blocks is None or _blocks(new) is None:
            dump_all(lockfile, stages, **options)
        elif new != text:
            logger.info("Updating lock file '%s'", lockfile.relpath)
            with lockfile.repo.fs.open(lockfile.path, "w", encoding="utf-8") as file:
                file.write(new)
            lockfile.repo.scm_context.track_file(lockfile.relpath)

    def load_yaml(lockfile: Lockfile, **options: Any) -> tuple[Any, str]:
        text = Path(lockfile.path).read_text(encoding="utf-8")
        blocks = _blocks(text)
        if options or blocks is None:
            return load_all(lockfile, **options)
        return {"stages": LockedStages(lockfile, blocks)}, text

    setattr(Lockfile, "dump_stages", dump_stages)  # noqa: B010
    setattr(Lockfile, "_load_yaml", load_yaml)  # noqa: B010


class LockedStages(Mapping[str, Any]):
    """The stages of dvc.lock; each is parsed and checked when it is read."""

    def __init__(self, lockfile: Lockfile, blocks: Mapping[str, str]) -> None:
        self.lockfile, self.blocks = lockfile, blocks

    def __getitem__(self, name: str) -> Any:
        from dvc.utils.serialize import parse_yaml

        content = parse_yaml(START + self.blocks[name], self.lockfile.path)
        return self.lockfile.validate(content, self.lockfile.relpath)["stages"][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


def _blocks(text: str) -> dict[str, str] | None:
    """The lines of each stage of a dvc.lock; None if blocks have anchors or unusual names."""
    blocks = {match[1]: match[0] for match in BLOCK.finditer(text)}
    is_complete = START + "".join(blocks.values()) == text
    return blocks if is_complete and "&id" not in text else None


@contextmanager
def _draft(path: Path) -> Iterator[TextIO]:
    """A new text file, which replaces `path` at the end; an exception leaves `path` as it was."""
    with publish(path) as (draft,), draft.open("w", encoding="utf-8") as file:
        yield file


if __name__ == "__main__":
    # Searching imported modules for garbage, also at the exit, takes over a third of the time.
    gc.disable()
    atexit.register(gc.freeze)
    from dvc.cli import main

    write_atomically()
    split_lockfile()
    sys.argv[0] = "dvc"  # the name in DVC's rwlock
    sys.exit(main())
