"""Ctrl-C and SIGTERM end a stage with one line and without a traceback."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

# Of several processes that train together, the first reports and publishes; the others end with it.
FIRST = os.environ.get("RANK", "0") == "0"


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a stage as Ctrl-C does."""


def exit_during_imports() -> None:
    """Have Ctrl-C exit at once while a stage imports its modules.

    An exception would not do: imports may swallow it, or print it.
    """
    if not FIRST:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif _is_stage() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_interrupts() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, and SIGTERM raise Terminated."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Ignore further signals, while the first is reported."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _is_stage() -> bool:
    return sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2].startswith("stages.")


def _exit(number: int, frame: object) -> NoReturn:
    module, *name = sys.orig_argv[2:]
    stage = "@".join([module.removeprefix("stages."), *name])
    os.write(2, f"{stage}: interrupted; the same command begins it again\n".encode())
    os._exit(130)


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated
