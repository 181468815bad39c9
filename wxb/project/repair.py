"""Repair what a killed run left in DVC's records; generators yield a sentence for each repair."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from wxb.core.errors import WxbError, counted
from wxb.core.files import publish
from wxb.project import revisions
from wxb.runtime.engine import LOCKFILE, RWLOCK

LOCK = RWLOCK.with_name("lock")


def release_rwlock() -> Iterator[str]:
    """Remove DVC's rwlock if it is damaged, or names processes, none of which still runs.

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


def remove_plain_locks(repo: Any) -> None:
    """Remove DVC's lock files if `core.hardlink_lock` is set and no other process holds them.

    With it, DVC takes any existing file for a lock. Plain locks leave the PID of the last holder.
    """
    paths = (LOCK, RWLOCK.with_name("rwlock.lock"))  # `release_rwlock` leaves the second
    for path in paths if repo.config["core"].get("hardlink_lock") else ():
        with suppress(OSError, ValueError):  # it does not exist, or is a hard link without a PID
            pid = int(path.read_text(encoding="utf-8"))
            if pid == os.getpid() or not _is_owner(pid, path.stat().st_mtime):
                path.unlink()


def clean_run_cache(repo: Any) -> Iterator[str]:
    """Remove empty folders of DVC's run cache.

    DVC leaves one if it is killed while it saves a finished stage. DVC 3.67 then looks for the
    newest entry (dvc/stage/cache.py) and fails at each run: "join() argument must be str".
    """
    for folder in sorted(Path(repo.stage_cache.cache_dir).glob("*/*")):
        if not any(folder.iterdir()):
            folder.rmdir()
            yield f"{folder} was left empty by a killed run; it was removed"


def restore_lockfile() -> Iterator[str]:
    """Replace a damaged dvc.lock by that of the commit HEAD; remove it if HEAD has no valid one.

    Other records come back from DVC's run cache in the next run. An old record does no harm: DVC
    compares its hashes with the files.
    """
    if not LOCKFILE.exists() or _is_valid_lockfile(LOCKFILE.read_bytes()):
        return
    head = None
    if revisions.is_repository():
        with suppress(WxbError):  # it has no commit
            head = revisions.commit("HEAD")
    content = (head and head.read(str(LOCKFILE))) or b""
    if _is_valid_lockfile(content):
        with publish(LOCKFILE) as (draft,):
            draft.write_bytes(content)
    else:
        LOCKFILE.unlink()
    yield (
        f"{LOCKFILE} was damaged, such as by a killed run or a full disk; its records are those of"
        " HEAD or come from DVC's run cache"
    )


def refill_cache(repo: Any) -> Iterator[str]:
    """Put outputs that are as in dvc.lock back into the cache; else DVC would run their stages."""
    restored = [out for stage in repo.index.stages for out in stage.outs if _restore(out)]
    if restored:
        yield f"DVC's cache lacked {counted(len(restored), 'outputs')}; restored from the workspace"


def _restore(out: Any) -> bool:
    """Save an output to DVC's cache if it lacks it and the bytes are as in dvc.lock; else False."""
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


def _is_owner(pid: int, file_time: float) -> bool:
    """Whether a process with this PID runs, and is older than the file that names it."""
    try:
        return float(psutil.Process(pid).create_time()) <= file_time + 1
    except psutil.Error:
        return False


def _is_valid_lockfile(content: bytes) -> bool:
    """Whether DVC can read this content of dvc.lock, with the key `stages` and only MD5 hashes."""
    from dvc.exceptions import DvcException
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from dvc.utils.serialize import parse_yaml
    from voluptuous import Invalid

    try:
        lock = COMPILED_LOCKFILE_SCHEMA(parse_yaml(content.decode(errors="replace"), str(LOCKFILE)))
        records = lock["stages"].values()
    except (DvcException, Invalid, KeyError):
        return False
    entries = chain(*(record.get(key, ()) for record in records for key in ("deps", "outs")))
    return all(entry.get("hash", "md5") == "md5" for entry in entries)  # DVC knows no other hash
