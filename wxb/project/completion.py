"""What a shell offers for names of params.yaml: `wxb --install-completion` sets it up."""

from __future__ import annotations

from collections.abc import Callable

import shellingham

from wxb.core.errors import WxbError
from wxb.core.params import PARAMS, read_yaml
from wxb.project.root import root


def names(*sections: str, more: tuple[str, ...] = ()) -> Callable[[str], list[str]]:
    """What completes the name of a block of these sections, or another of a few words.

    Nothing where there is no project, or its params.yaml cannot be read: a shell has no place to
    say so.
    """

    def complete(incomplete: str) -> list[str]:
        there = root()
        try:
            content = read_yaml(there / PARAMS) if there is not None else None
        except WxbError:
            content = None
        blocks = content if isinstance(content, dict) else {}
        known = [*more, *(name for section in sections for name in blocks.get(section) or ())]
        return [name for name in dict.fromkeys(known) if name.startswith(incomplete)]

    return complete


def require_shell() -> None:
    """Raise an error unless a parent process is a shell, whose completion can be installed."""
    try:
        shellingham.detect_shell()
    except (shellingham.ShellDetectionFailure, OSError) as error:
        raise WxbError(
            "found no shell to complete names in; run `wxb --install-completion` yourself"
            " at the prompt of bash, zsh, fish or PowerShell"
        ) from error
