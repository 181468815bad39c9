"""Profiles: files `params/<profile>.yaml` with values and blocks to set in params.yaml.

`params/demo.yaml` has every key that a profile may set. The others have only what differs from it,
and blocks of their own, which are removed when another profile is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from wxb.core.params import PARAMS, ParamsError, parse_yaml
from wxb.core.params.section import flatten
from wxb.project import params_file
from wxb.project.revisions import Tree, WorkingTree

FOLDER = Path("params")
BASE = "demo"

Blocks = dict[str, dict[str, Any]]  # by section and name


class Switch(NamedTuple):
    """What a profile changed in params.yaml: keys, and whole blocks (`corpora.weibo`)."""

    changes: dict[str, tuple[Any, Any]]  # the value before, and after, by dotted key
    added: list[str]
    removed: list[str]
    kept: list[str]  # other profiles whose blocks stay

    @property
    def size(self) -> int:
        """Number of changed keys and of added and removed blocks."""
        return len(self.changes) + len(self.added) + len(self.removed)


def switch(profile: str, path: Path = PARAMS) -> Switch:
    """Overlay params.yaml with the demo and a profile; all else, comments included, stays.

    Blocks of the demo that the user removed stay removed. Blocks of another profile are removed,
    unless one of them was changed.

    Raises ParamsError if there is no such profile, or if the result would be invalid.
    """
    profiles = contents()
    if profile not in profiles:
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; choose from {', '.join(profiles)}")
    text = params_file.read(path)
    before = params_file.parse(text)
    after, kept = _switched(before, profile, profiles)
    params_file.write(params_file.update(text, after), path)
    old, new = (
        {".".join(path): block for path, block in _by_path(params).items()}
        for params in (before, after)
    )
    values = flatten({name: old[name] for name in old if name in new})
    new_values = flatten({name: new[name] for name in new if name in old})
    return Switch(
        {
            key: (values.get(key), new_values.get(key))
            for key in {**values, **new_values}
            if values.get(key) != new_values.get(key)
        },
        added=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        kept=kept,
    )


def contents(tree: Tree | None = None) -> dict[str, Any]:
    """The content of every profile by name, sorted; `tree` defaults to the working folder.

    Raises ParamsError if a file is not YAML.
    """
    tree = WorkingTree() if tree is None else tree
    files = [file for file in map(PurePath, tree.files(str(FOLDER))) if file.suffix == ".yaml"]
    return {
        file.stem: parse_yaml((tree.read(str(file)) or b"{}").decode("utf-8"), Path(file))
        for file in sorted(files, key=lambda file: file.stem)
    }


def additions(profiles: Mapping[str, Any]) -> dict[str, Blocks]:
    """The blocks that each profile adds to params.yaml: those that the demo does not have."""
    base = profiles.get(BASE, {})
    return {
        name: {
            section: own
            for section, blocks in profile.items()
            if isinstance(blocks, Mapping)
            and (own := {k: v for k, v in blocks.items() if k not in base.get(section, {})})
        }
        for name, profile in profiles.items()
    }


def _switched(
    params: Mapping[str, Any], profile: str, profiles: Mapping[str, Any]
) -> tuple[Blocks, list[str]]:
    """The content of params.yaml with a profile set; and the other profiles whose blocks stay."""
    content = _by_path(params)
    own = {name: _by_path(blocks) for name, blocks in additions(profiles).items()}
    others = {name: blocks.keys() - own[profile].keys() for name, blocks in own.items()}
    for name, members in others.items():
        present = members & content.keys()
        if all(content[path] == own[name][path] for path in present):
            content = {path: block for path, block in content.items() if path not in present}
    kept = [name for name, members in others.items() if members & content.keys()]
    for name in (BASE, profile):
        for path, block in _by_path(profiles[name]).items():
            if path in content or path in own[name] or len(path) == 1:
                content[path] = _overlaid(content.get(path), block)
    result: dict[str, Any] = {key: {} for key, value in params.items() if isinstance(value, dict)}
    for (section, *names), block in content.items():
        if names:
            result.setdefault(section, {})[names[0]] = block
        else:
            result[section] = block
    return result, kept


def _by_path(params: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """The blocks of params.yaml by section and name, and its other values by their key."""
    values: dict[tuple[str, ...], Any] = {}
    for key, value in params.items():
        is_section = isinstance(value, Mapping)
        values |= {(key, name): value[name] for name in value} if is_section else {(key,): value}
    return values


def _overlaid(value: Any, overlay: Any) -> Any:
    """A value with the keys of an overlay; an empty mapping is replaced."""
    if not value or not (isinstance(value, Mapping) and isinstance(overlay, Mapping)):
        return overlay
    return {**value, **{key: _overlaid(value.get(key), new) for key, new in overlay.items()}}
