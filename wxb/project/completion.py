"""Shell completion of names in params.yaml; `wxb --install-completion` sets it up."""

from __future__ import annotations

from collections.abc import Callable

from wxb.core.errors import WxbError
from wxb.core.params import PARAMS, read_yaml
from wxb.project.root import find_root


def name_completer(*sections: str, extra: tuple[str, ...] = ()) -> Callable[[str], list[str]]:
    """A function that completes block names of these sections, and the words in `extra`.

    Outside a project, and if params.yaml is invalid, it completes `extra` alone: it runs while the
    user types, when no error can be shown.
    """

    def complete(incomplete: str) -> list[str]:
        root = find_root()
        try:
            content = read_yaml(root / PARAMS) if root is not None else None
        except WxbError:
            content = None
        blocks = content if isinstance(content, dict) else {}
        words = [*extra, *(name for section in sections for name in blocks.get(section) or ())]
        return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]

    return complete
