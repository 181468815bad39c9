"""The sizes of a run: `params/<profile>.yaml` states what to set in params.yaml.

`params/demo.yaml` states every key that a profile may set; the others only what differs from it.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from wxb.files import publish
from wxb.params import PARAMS, ParamsError, check, read_yaml

FOLDER = Path("params")
BASE = "demo"


class Change(NamedTuple):
    """A key of params.yaml (dotted) that a profile changed, and its values before and after."""

    key: str
    before: Any
    after: Any


def names() -> list[str]:
    """The profiles there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def switch(profile: str, path: Path = PARAMS) -> list[Change]:
    """Set what the profile states in params.yaml; all else, comments included, stays.

    Blocks that params.yaml no longer has stay removed.

    Raises ParamsError when there is no such profile, or when the outcome would not be valid.
    """
    if profile not in names():
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; there is: {', '.join(names())}")
    params = read_yaml(path, comments=True)
    before = flat(params)
    for name in dict.fromkeys((BASE, profile)):
        _merge(params, _without_removed(read_yaml(FOLDER / f"{name}.yaml"), params))
    after = flat(params)
    text = dump(params)
    check(YAML(typ="safe").load(text), path)
    with publish(path) as (draft,):
        draft.write_text(text, encoding="utf-8")
    return [
        Change(key, before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def dump(content: Any) -> str:
    """YAML in the style of params.yaml."""
    yaml = YAML()
    yaml.width = 1000
    stream = io.StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _without_removed(profile: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """A profile without the blocks of sections that params.yaml lacks."""
    return {
        key: {name: block for name, block in value.items() if name in params.get(key, {})}
        if isinstance(value, Mapping)
        else value
        for key, value in profile.items()
    }


def _merge(target: Any, overlay: Mapping[str, Any]) -> None:
    """Lay the overlay over the target, block by block."""
    for name, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(target.get(name), Mapping):
            _merge(target[name], value)
        elif name not in target or target[name] != value:
            target[name] = value


def flat(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a block by dotted key; an empty block is a value."""
    values: dict[str, Any] = {}
    for key, value in block.items():
        if isinstance(value, Mapping) and value:
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values
