"""Repair what a killed run left in DVC's records. Each function returns what it repaired."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]

from wxb.core.files import publish
from wxb.core.phrases import counted
from wxb.project import revisions
from wxb.project.dag import LOCKFILE
from wxb.runtime.engine import RWLOCK

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.repo import Repo

LOCK = RWLOCK.with_name("lock")


def release_rwlock() -> Iterator[str]:
    """Remove DVC's rwlock if it is damaged, or no process that it names still runs.

    DVC respects a lock as long as any process has its PID. Does nothing while DVC writes the file.
    """
    from dvc.lock import LockError, make_lock
    from dvc.rwlock import RWLOCK_LOCK, SCHEMA
    from voluptuous import Invalid

    if not RWLOCK.exists():
        return
    try:  # DVC holds this lock while it writes
        with make_lock(str(RWLOCK.with_name(RWLOCK_LOCK)), str(RWLOCK.parent)):
            content = SCHEMA(json.loads(RWLOCK.read_bytes()))
            written = RWLOCK.stat().st_mtime
            owners = [*content["write"].values(), *chain(*content["read"].values())]
            if owners and not any(_is_owner(owner["pid"], written) for owner in owners):
                RWLOCK.unlink()
                yield f"{RWLOCK} had locks of a killed run; it was removed"
    except LockError:
        return
    except (ValueError, Invalid):
        RWLOCK.unlink()
        yield f"{RWLOCK} was damaged by a killed run; it was removed"


def remove_plain_locks(repo: Repo) -> None:
    """Remove the files that plain locks of DVC left, if `core.hardlink_lock` is set.

    It takes any existing file for a lock. A file has the PID of its last holder.
    """
    paths = (LOCK, RWLOCK.with_name("rwlock.lock"))  # `release_rwlock` leaves the second
    for path in paths if repo.config["core"].get("hardlink_lock") else ():
        with suppress(OSError, ValueError):  # it does not exist, or is a hard link without a PID
            pid = int(path.read_text(encoding="utf-8"))
            if pid == os.getpid() or not _is_owner(pid, path.stat().st_mtime):
                path.unlink()


def clean_run_cache(repo: Repo) -> Iterator[str]:
    """Remove empty folders of DVC's run cache.

    DVC leaves one if it is killed while it saves a finished stage. DVC 3.67 then looks for the
    newest entry (dvc/stage/cache.py) and fails at each run: "join() argument must be str".
    """
    for folder in sorted(Path(repo.stage_cache.cache_dir).glob("*/*")):
        if not any(folder.iterdir()):
            folder.rmdir()
            yield f"{folder} was left empty by a killed run; it was removed"


def restore_lockfile() -> Iterator[str]:
    """Replace the bad records of dvc.lock by those of the commit HEAD; all if it is not YAML.

    A record that HEAD lacks comes back from DVC's run cache in the next run. An old record does no
    harm: DVC compares its hashes with the files.
    """
    from dvc.utils.serialize import dump_yaml

    if not LOCKFILE.exists():
        return
    records = _records(LOCKFILE.read_bytes())
    valid = {name: record for name, record in records.items() if _is_valid(record)}
    if records and len(valid) == len(records):
        return
    head = revisions.find_commit("HEAD")
    committed = _records((head and head.read(str(LOCKFILE))) or b"")
    if restored := {**committed, **valid}:
        with publish(LOCKFILE) as (draft,):
            dump_yaml(str(draft), {"schema": "2.0", "stages": restored})
    else:
        LOCKFILE.unlink()  # DVC then uses its run cache
    yield (
        f"{LOCKFILE} was damaged, such as by a killed run or a full disk;"
        f" {counted(len(valid), 'records')} were kept, and the others are those of HEAD or come"
        " from DVC's run cache"
    )


def refill_cache(repo: Repo) -> Iterator[str]:
    """Put outputs back into DVC's cache from the workspace if their hashes are those of dvc.lock.

    Without this, DVC would run their stages again.
    """
    restored = [out for stage in repo.index.stages for out in stage.outs if _restore(out)]
    if restored:
        yield f"DVC's cache lacked {counted(len(restored), 'outputs')}; restored from the workspace"


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


def _is_owner(pid: int, written: float) -> bool:
    """Whether a process with this PID runs, and is older than the file that names it."""
    try:
        return float(psutil.Process(pid).create_time()) <= written + 1
    except psutil.Error:
        return False


def _is_valid(record: Any) -> bool:
    from dvc.schema import LOCK_FILE_STAGE_SCHEMA
    from voluptuous import Invalid, Schema

    try:
        Schema(LOCK_FILE_STAGE_SCHEMA)(record)
    except Invalid:
        return False
    entries = [*record.get("deps", ()), *record.get("outs", ())]
    return all(entry.get("hash", "md5") == "md5" for entry in entries)  # DVC knows no other hash


def _records(content: bytes) -> dict[str, Any]:
    from dvc.exceptions import DvcException
    from dvc.utils.serialize import parse_yaml

    try:
        return dict(parse_yaml(content.decode(errors="replace"), str(LOCKFILE))["stages"])
    except (DvcException, KeyError, TypeError, ValueError):
        return {}
