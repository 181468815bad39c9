"""The exception for errors that a user can fix, and helpers for messages."""

import difflib
import errno
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path


class WxbError(Exception):
    """An error that the user can fix.

    The message says what is wrong, where, and what to do. Commands print it without a traceback.
    """


# Exceptions that no damaged file causes.
DEFECTS = (AttributeError, NameError, AssertionError, NotImplementedError, MemoryError)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A suffix such as "; did you mean 'encoder'?"; empty if no known name is similar."""
    similar = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def choices(name: object, known: Iterable[str]) -> str:
    """The suffix of `did_you_mean`, and all known names in the given order."""
    names = list(known)
    return f"{did_you_mean(name, names)} (choose from: {', '.join(names)})"


def counted(count: int, noun: str) -> str:
    """A count and its noun, given as a plural in -s: "1 record", "2,000 records"."""
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}"


def shortened(names: Sequence[str], most: int) -> str:
    """The first `most` names and the number of the others: "a, b and 3 more"."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def require_output(path: Path, stage: str) -> None:
    """Raise WxbError with the stage to run, such as `train@NAME`, if a path does not exist."""
    if not path.exists():
        raise WxbError(f"{path} does not exist; run `dvc repro {stage}` first")


def storage_error(error: BaseException) -> str | None:
    """A line with advice for an error of a full, read-only or forbidden disk; None for others.

    safetensors and tokenizers raise no OSError, and torch.save reports a full disk as a position.
    """
    advice = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space")
    advice |= dict.fromkeys((errno.EACCES, errno.EPERM), "change the permissions")
    advice[errno.EROFS] = "choose a folder that can be written"
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    if match := re.search(r"\(os error (\d+)\)|unexpected pos \d+ vs", str(error)):
        number = int(match[1] or errno.ENOSPC)
    if number not in advice:
        return None
    where = f"{name}: " if name else ""
    return f"{where}{os.strerror(number)}; {advice[number]}, and run it again"


def error_line(error: BaseException) -> str:
    """The type and message of an error, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
