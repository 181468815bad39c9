"""Repair what a killed run left in DVC's records. Each function returns what it repaired."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]

from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json
from wxb.core.wording import counted
from wxb.project import revisions
from wxb.project.dag import LOCKFILE
from wxb.runtime.engine import RWLOCK

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo

RECORD = re.compile(r"^  (\S.*):$", re.MULTILINE)  # the first line of a stage in dvc.lock
CONFLICT = re.compile(r"^<<<<<<< ", re.MULTILINE)


def rwlock() -> Iterator[str]:
    """Remove DVC's rwlock if it is damaged, and its locks whose PIDs belong to newer processes.

    Does nothing while DVC writes it. DVC itself removes the locks of dead processes.
    """
    from dvc.config import Config, to_bool
    from dvc.lock import LockError, make_lock
    from dvc.rwlock import RWLOCK_LOCK, SCHEMA
    from voluptuous import Invalid

    if not RWLOCK.exists():
        return
    with ExitStack() as stack:
        try:  # DVC holds this lock while it writes
            core = Config.from_cwd(validate=False).get("core", {})
            hardlink = to_bool(core.get("hardlink_lock", "false"))
            guard = str(RWLOCK.with_name(RWLOCK_LOCK))
            stack.enter_context(make_lock(guard, str(RWLOCK.parent), hardlink_lock=hardlink))
        except LockError:
            return
        try:
            content = SCHEMA(json.loads(RWLOCK.read_bytes()))
        except (ValueError, Invalid):
            RWLOCK.unlink()
            yield f"{RWLOCK} was damaged by a killed run; it was removed"
            return
        written = RWLOCK.stat().st_mtime
        modes: dict[str, dict[str, Any]] = {"write": {}, "read": {}}
        for path, owner in content["write"].items():
            if not _is_reused(owner["pid"], written):
                modes["write"][path] = owner
        for path, owners in content["read"].items():
            if kept := [owner for owner in owners if not _is_reused(owner["pid"], written)]:
                modes["read"][path] = kept
        if modes != content:
            with publish(RWLOCK) as (draft,):
                write_json(draft, modes)
            yield f"{RWLOCK} had locks of a killed run, whose PIDs now belong to others; removed"


def run_cache(repo: Repo) -> Iterator[str]:
    """Remove empty folders of DVC's run cache.

    DVC leaves one if it is killed while it saves a finished stage. DVC 3.67 then looks for the
    newest entry (dvc/stage/cache.py) and fails at each run: "join() argument must be str".
    """
    for folder in sorted(Path(repo.stage_cache.cache_dir).glob("*/*")):
        if not any(folder.iterdir()):
            folder.rmdir()
            yield f"{folder} was left empty by a killed run; it was removed"


def lockfile(repo: Repo) -> Iterator[str]:
    """Restore the records of dvc.lock that a kill or a full disk cut off.

    Takes the complete records of the file, and those of the commit HEAD for the others. A record
    that neither has comes back from DVC's run cache in the next run. An old record does no harm:
    DVC compares its hashes with the files. A conflict of a merge is left to the user.
    """
    if not LOCKFILE.exists():
        return
    text = LOCKFILE.read_text(encoding="utf-8", errors="replace")
    if CONFLICT.search(text):
        return
    committed = _committed()
    if not text.endswith("\n") or not _is_valid(repo):
        starts = [match.start() for match in RECORD.finditer(text)]
        complete = _records(text[: starts[-1]] if starts else "")
        _write({**_records(committed), **complete})
        yield (
            f"{LOCKFILE} was cut off by a killed run or a full disk after"
            f" {counted(len(complete), 'records')}; the others are those of HEAD or come from DVC's"
            " run cache"
        )
        return
    stages = {
        stage.addressing
        for stage in repo.index.stages
        if all(out.exists for out in stage.outs) and not all(out.hash_info for out in stage.outs)
    }
    if stages & {*RECORD.findall(committed)}:
        old, current = _records(committed), _records(text)
        lost = {name: old[name] for name in stages & {*old} if old[name] != current.get(name)}
        if lost:
            _write({**current, **lost})
            repo._reset()
            records = counted(len(lost), "records")
            yield f"{LOCKFILE} lacked {records} of HEAD whose outputs exist; restored"


def cache(repo: Repo) -> Iterator[str]:
    """Put outputs back into DVC's cache from the workspace if their hashes are those of dvc.lock.

    Without this, DVC would run their stages again.
    """
    restored = [out for stage in repo.index.stages for out in stage.outs if _restore(out)]
    if restored:
        yield f"DVC's cache lacked {counted(len(restored), 'outputs')}; restored from the workspace"


def objects(repo: Repo) -> Iterator[str]:
    """Remove altered objects of the cache that DVC would restore: it believes their mode 0444."""
    from dvc_data.hashfile.hash import file_md5
    from dvc_data.hashfile.tree import Tree

    removed = 0
    for out in (out for stage in repo.index.stages for out in stage.outs):
        listing = out.get_obj() if out.use_cache and out.hash_info and not out.exists else None
        if listing is None:
            continue
        entries = [entry.value for _, _, entry in listing] if isinstance(listing, Tree) else []
        for oid in {*entries, out.hash_info.value}:
            path = Path(out.cache.oid_to_path(oid))
            if path.exists() and file_md5(str(path)) != oid.removesuffix(".dir"):
                path.unlink()
                removed += 1
    if removed:
        yield f"removed {counted(removed, 'altered objects')} from DVC's cache"


def _restore(out: Output) -> bool:
    """Put an output back into the cache; returns whether it was missing and is there now."""
    from dvc_data.hashfile.state import StateNoop

    if not (out.use_cache and out.hash_info and out.exists and out.changed_cache()):
        return False
    state = out.cache.state
    out.cache.state = StateNoop()  # hash the bytes: its hashes are those of known times
    try:
        if out.changed_checksum():
            return False
        out.commit(relink=False)
    finally:
        out.cache.state = state
    return True


def _is_reused(pid: int, written: float) -> bool:
    """Whether the process with this PID is newer than a file that names it."""
    try:
        return float(psutil.Process(pid).create_time()) > written + 1
    except psutil.Error:
        return False


def _committed() -> str:
    """The text of dvc.lock in HEAD; empty if there is none."""
    try:
        content = revisions.commit("HEAD").read(str(LOCKFILE))
    except WxbError:  # no repository, or no git
        return ""
    return (content or b"").decode("utf-8")


def _is_valid(repo: Repo) -> bool:
    """Whether DVC can read dvc.lock."""
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException

    try:
        return bool(repo.index)  # parses dvc.lock, as the callers of `lockfile` do
    except DvcException:  # perhaps of dvc.yaml
        pass
    try:
        return bool(Lockfile(repo, str(LOCKFILE.absolute())).load())
    except DvcException:
        return False


def _records(text: str) -> dict[str, Any]:
    """The stages of a text of dvc.lock; empty if it is not valid."""
    from dvc.exceptions import DvcException
    from dvc.utils.serialize import parse_yaml

    try:
        stages = parse_yaml(text, str(LOCKFILE)).get("stages")
    except (DvcException, AttributeError):
        return {}
    return dict(stages) if isinstance(stages, dict) else {}


def _write(records: dict[str, Any]) -> None:
    """Write dvc.lock; without records, remove it: DVC then uses its run cache."""
    from dvc.utils.serialize import dump_yaml

    if records:
        with publish(LOCKFILE) as (draft,):
            dump_yaml(str(draft), {"schema": "2.0", "stages": records})
    else:
        LOCKFILE.unlink()
