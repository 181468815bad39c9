"""End a stage or `wxb` on Ctrl-C or SIGTERM with one line instead of a traceback."""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

# If several processes train together, only the first reports and writes results. The others ignore
# Ctrl-C and end with it.
IS_FIRST_PROCESS = os.environ.get("RANK", "0") == "0"
INTERRUPTED = "interrupted; the same command goes on from its last checkpoint, else starts again"


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; handled like Ctrl-C."""


def exit_during_imports() -> None:
    """Make Ctrl-C exit a stage or `wxb` at once while it imports; its worker processes ignore it.

    Modules may catch or print an exception on import. Only workers replace another handler.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    is_stage = sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2].startswith("stages.")
    is_wxb = Path(sys.argv[0]).name == "wxb"
    if not IS_FIRST_PROCESS:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif is_default and (is_stage or is_wxb):
        signal.signal(signal.SIGINT, _exit_immediately)


def raise_interrupts() -> None:
    """Make SIGTERM raise Terminated, and Ctrl-C KeyboardInterrupt unless it has another handler."""
    signal.signal(signal.SIGTERM, _raise_interrupt)
    restore_keyboard_interrupt()


def restore_keyboard_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again where `exit_during_imports` made it exit."""
    if signal.getsignal(signal.SIGINT) is _exit_immediately:
        signal.signal(signal.SIGINT, _raise_interrupt)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C and SIGTERM from now on."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)


def _exit_immediately(signal_number: int, frame: object) -> NoReturn:
    """Handle Ctrl-C: print a line that names the stage or `wxb`; exit with 130, without cleanup."""
    stage = "@".join(sys.orig_argv[2:]).removeprefix("stages.")
    line = f"{stage}: {INTERRUPTED}" if sys.orig_argv[1] == "-m" else "wxb: interrupted"
    os.write(2, f"{line}\n".encode())
    os._exit(130)


def _raise_interrupt(signal_number: int, frame: Any) -> NoReturn:
    """Raise KeyboardInterrupt, or Terminated on SIGTERM; during an import, again a second later.

    Modules may catch the exception: pyarrow does while it imports pandas.
    """
    if 'File "<frozen importlib' in "".join(traceback.format_stack(frame)):
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal_number))
        timer.daemon = True
        timer.start()
    raise Terminated if signal_number == signal.SIGTERM else KeyboardInterrupt
