"""Profiles: files `params/<profile>.yaml` with values and blocks to set in params.yaml.

`params/demo.yaml` has every key that a profile may set. The others have only what differs from it,
and blocks of their own, which are removed when another profile is set.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from wxb.core.params import PARAMS, ParamsError, parse_yaml, read_yaml
from wxb.project import params_file
from wxb.project.revisions import Tree, WorkingTree

FOLDER = Path("params")
BASE = "demo"


class Switch(NamedTuple):
    """What a profile changed in params.yaml: values, and whole blocks (`corpora.weibo`)."""

    is_changed: bool
    added: list[str]
    removed: list[str]
    kept: list[str]  # other profiles whose blocks stay


def switch(profile: str, path: Path = PARAMS) -> Switch:
    """Overlay params.yaml with the demo and a profile; all else, comments included, stays.

    Blocks of the demo that the user removed stay removed. Blocks of another profile are removed,
    unless one of them was changed.

    Raises ParamsError if there is no such profile, or if the result would be invalid.
    """
    profiles = contents()
    if profile not in profiles:
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; choose from {', '.join(profiles)}")
    before = _blocks(content := read_yaml(path))
    own = {name: _blocks(added) for name, added in additions(profiles).items()}
    others = {name: before.keys() & added.keys() - own[profile] for name, added in own.items()}
    after = dict(before)
    for name, keys in others.items():
        if all(before[key] == own[name][key] for key in keys):
            after = {key: block for key, block in after.items() if key not in keys}
    kept = [name for name, keys in others.items() if keys & after.keys()]
    for name in (BASE, profile):
        for key, block in _blocks(profiles[name]).items():
            if key in after or key in own[profile] or len(key) == 1:
                after[key] = _overlaid(after.get(key), block)
    result: dict[str, Any] = {key: {} for key, value in content.items() if isinstance(value, dict)}
    for (section, *names), block in after.items():
        if names:
            result.setdefault(section, {})[names[0]] = block
        else:
            result[section] = block
    params_file.write(result, path)
    added = [".".join(key) for key in after if key not in before]
    removed = [".".join(key) for key in before if key not in after]
    return Switch(after != before, added, removed, kept)


def contents(tree: Tree | None = None) -> dict[str, Any]:
    """The content of every profile by name, sorted; `tree` defaults to the working folder.

    Raises ParamsError if a file is not YAML.
    """
    tree = WorkingTree() if tree is None else tree
    files = [file for file in map(PurePath, tree.files(str(FOLDER))) if file.suffix == ".yaml"]
    return {
        file.stem: parse_yaml(tree.read(str(file)) or b"{}", Path(file))
        for file in sorted(files, key=lambda file: file.stem)
    }


def additions(profiles: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """The blocks that each profile adds, by section and name: those that the demo does not have."""
    base = profiles.get(BASE, {})
    return {
        name: {
            section: {key: b for key, b in blocks.items() if key not in base.get(section, {})}
            for section, blocks in profile.items()
            if isinstance(blocks, Mapping)
        }
        for name, profile in profiles.items()
    }


def _blocks(params: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """The blocks of params.yaml by section and name, and its other values by their key."""
    blocks: dict[tuple[str, ...], Any] = {}
    for key, value in params.items():
        is_section = isinstance(value, Mapping)
        blocks |= {(key, name): value[name] for name in value} if is_section else {(key,): value}
    return blocks


def _overlaid(value: Any, overlay: Any) -> Any:
    """A value with the keys of an overlay; an empty mapping is replaced."""
    if not value or not (isinstance(value, Mapping) and isinstance(overlay, Mapping)):
        return overlay
    return {**value, **{key: _overlaid(value.get(key), new) for key, new in overlay.items()}}
