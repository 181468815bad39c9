"""The engine of a stage: the process of DVC that runs it. A stage ends with its engine.

Otherwise a stage whose engine was killed would publish over the results of a later run. DVC starts
stages through a shell, which may wait or be replaced, so the engine is the parent or an ancestor.
DVC's rwlock has its PID.
"""

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from wxb.core.errors import WxbError

LOCKFILE, RWLOCK = Path("dvc.lock"), Path(".dvc/tmp/rwlock")  # DVC rewrites both
SECONDS_BETWEEN = 0.2  # two looks at the engine
ENDED = "the engine of {} has ended, so nothing was published; run it again"


def writer_pids() -> dict[str, int]:
    """The paths that runs of DVC are writing, each with the PID of the process.

    Empty without DVC's rwlock. Raises ValueError if it is damaged, or just being written.
    """
    try:
        entries = json.loads(RWLOCK.read_bytes()).get("write", {})
        return {path: int(owner["pid"]) for path, owner in entries.items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{RWLOCK} is not as DVC writes it") from error


def find(stage: str) -> psutil.Process | None:
    """The process of DVC that runs this process as `stage`; None if DVC does not run it.

    Also None if DVC's rwlock is damaged or names none. Raises WxbError if it has ended already.
    """
    pids: set[int] = set()
    with suppress(ValueError, OSError):  # DVC itself refuses to go on with a damaged file
        pids = {*writer_pids().values()}
    if os.environ.get("DVC_STAGE") != stage or not pids:
        return None
    for ancestor in psutil.Process().parents():
        if ancestor.pid in pids:
            return ancestor
    raise WxbError(ENDED.format(stage))


def require_running(stage: str, engine: psutil.Process) -> None:
    """Raise WxbError if the engine of a stage has ended."""
    if _has_ended(engine):
        raise WxbError(ENDED.format(stage))


def terminate_after(engine: psutil.Process) -> None:
    """Start a thread that sends this process SIGTERM once the engine ends; exits 143 if ignored."""

    def watch() -> None:
        while not _has_ended(engine):
            time.sleep(SECONDS_BETWEEN)
        print(f"the engine of this stage (process {engine.pid}) has ended", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)  # then a stage that ignores SIGTERM is ended at once
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _has_ended(engine: psutil.Process) -> bool:  # also if it is a zombie
    try:
        return not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
