"""Profiles: files `params/<profile>.yaml` with values and blocks to set in params.yaml.

`params/demo.yaml` has every key that a profile may set. The others have only what differs from it,
and blocks of their own, which are removed when another profile is set.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core.params import PARAMS, ParamsError, parse_yaml, read_yaml
from wxb.core.params.section import flatten
from wxb.project import params_file

FOLDER = Path("params")
BASE = "demo"

Key = tuple[str, ...]  # the section and name of a block, or the key of another value


class Switch(NamedTuple):
    """The keys and blocks (`corpora.weibo`) that a profile added, removed or changed."""

    added: list[str]
    removed: list[str]
    changed: list[str]
    kept: list[str]  # other profiles whose blocks stay


def switch(profile: str) -> Switch:
    """Write a profile over params.yaml, and the demo's values over those of others in force.

    A profile is in force if more than half of its values hold. All else stays, comments included,
    and blocks of the demo that the user removed stay removed. Blocks of another profile are
    removed, but all of them stay if one was changed. Raises ParamsError for an unknown profile or
    invalid result, and PlanError if a run is active.
    """
    content, profiles = read_yaml(PARAMS), contents()
    if profile not in profiles:
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; choose from {', '.join(profiles)}")
    before = blocks_by_key(content)
    blocks = {name: blocks_by_key(params) for name, params in profiles.items()}
    own = {n: {k for k in each if len(k) == 2} - blocks[BASE].keys() for n, each in blocks.items()}
    others = {name: (before.keys() & keys) - own[profile] for name, keys in own.items()}
    obsolete = set[Key]()
    for name, keys in others.items():
        if all(before[key] == blocks[name][key] for key in keys):
            obsolete |= keys
    kept = [name for name, keys in others.items() if keys - obsolete]
    after = {key: block for key, block in before.items() if key not in obsolete}
    for other in blocks.values():
        shared = other.keys() & blocks[BASE].keys() & after.keys()
        theirs, demo, now = (
            {*map(repr, flatten({".".join(key): each[key] for key in shared}).items())}
            for each in (other, blocks[BASE], after)
        )
        for key in shared if 2 * len((theirs - demo) & now) > len(theirs - demo) else ():
            after[key] = _replace(after[key], other[key], blocks[BASE][key])
    for key, block in blocks[profile].items():
        if key in after or key in own[profile] or len(key) == 1:
            after[key] = _deep_merge(after.get(key), block)
    # A section without blocks stays.
    edited: dict[str, Any] = {k: {} for k, value in content.items() if isinstance(value, dict)}
    for (section, *names), block in after.items():
        if names:
            edited.setdefault(section, {})[names[0]] = block
        else:
            edited[section] = block
    params_file.write(edited)
    added = [".".join(key) for key in after if key not in before]
    removed = [".".join(key) for key in before if key not in after]
    changed = [".".join(key) for key in before if after.get(key, before[key]) != before[key]]
    return Switch(added, removed, changed, kept)


def contents() -> dict[str, Any]:
    """The content of every profile by name, sorted. Raises ParamsError if a file is not YAML."""
    files = sorted(FOLDER.rglob("*.yaml"), key=lambda file: file.stem)
    return {file.stem: parse_yaml(file.read_bytes() or b"{}", file) for file in files}


def studies() -> set[str]:
    """The names of the studies of all profiles."""
    return {name for params in contents().values() for name in params.get("studies") or {}}


def blocks_by_key(params: Mapping[str, Any]) -> dict[Key, Any]:
    """The blocks of params.yaml by section and name, and its other values by their key."""
    blocks: dict[Key, Any] = {}
    for key, value in params.items():
        is_section = isinstance(value, Mapping)
        blocks |= {(key, name): value[name] for name in value} if is_section else {(key,): value}
    return blocks


def _replace(value: Any, old: Any, new: Any) -> Any:
    """The value, with those of `new` where it has those of `old`; mappings key by key."""
    if all(isinstance(values, Mapping) for values in (value, old, new)):
        return {k: _replace(v, old[k], new[k]) if k in old else v for k, v in value.items()}
    return new if value == old else value


def _deep_merge(value: Any, overlay: Any) -> Any:
    """Merge mappings key by key, also inner ones; of any other two values, return the overlay."""
    if not (isinstance(value, Mapping) and isinstance(overlay, Mapping)):
        return overlay
    return {**value, **{key: _deep_merge(value.get(key), new) for key, new in overlay.items()}}
