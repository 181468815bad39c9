"""Profiles: files `params/<profile>.yaml` with values and blocks to set in params.yaml.

`params/demo.yaml` has every key that a profile may set. The others have only what differs from it,
and blocks of their own, which are removed when another profile is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.params import PARAMS, ParamsError, parse_yaml, read_yaml
from wxb.core.params.section import flatten
from wxb.project import params_file
from wxb.project.revisions import Tree, WorkingTree

FOLDER = Path("params")
BASE = "demo"

Blocks = dict[str, dict[str, Any]]  # by section and name


class Change(NamedTuple):
    """A key of params.yaml (dotted) with another value, and both values."""

    key: str
    before: Any
    after: Any


class Switch(NamedTuple):
    """What a profile changed in params.yaml: keys, and whole blocks (`corpora.weibo`)."""

    changes: list[Change]
    added: list[str]
    removed: list[str]
    kept: dict[str, str]  # other profiles whose blocks stay, each with a key that is the reason

    @property
    def size(self) -> int:
        """Number of changed keys and of added and removed blocks."""
        return len(self.changes) + len(self.added) + len(self.removed)


def switch(profile: str, path: Path = PARAMS) -> Switch:
    """Set the values of a profile in params.yaml; all else, comments included, stays.

    Blocks of the demo that the user removed stay removed. Blocks of another profile are removed,
    unless one of them was changed or is used by a block that stays.

    Raises ParamsError if there is no such profile, or if the result would be invalid.
    """
    profiles = contents()
    if profile not in profiles:
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; choose from {', '.join(profiles)}")
    text = params_file.read(path)
    before = params_file.parse(text)
    after, kept = _switched(before, profile, profiles)
    params_file.write(params_file.update(text, after), path)
    return _differences(flatten(before), flatten(after), kept)


def switch_sizes(path: Path = PARAMS) -> dict[str, int]:
    """The number of keys and blocks that each profile would change in a valid params.yaml."""
    params, profiles = read_yaml(path), contents()
    sizes = {}
    for name in profiles:
        after, kept = _switched(params, name, profiles)
        sizes[name] = _differences(flatten(params), flatten(after), kept).size
    return sizes


def contents(tree: Tree | None = None) -> dict[str, Any]:
    """The content of every profile by name, sorted; `tree` defaults to the working folder.

    Raises ParamsError if a file is not YAML.
    """
    tree = WorkingTree() if tree is None else tree
    files = [file for file in map(PurePath, tree.files(str(FOLDER))) if file.suffix == ".yaml"]
    result = {}
    for file in sorted(files, key=lambda file: file.stem):
        try:
            text = (tree.read(str(file)) or b"{}").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ParamsError(f"{file}: not readable as YAML\n{error}") from None
        result[file.stem] = parse_yaml(text, Path(file))
    return result


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


def profile_adding(study: str) -> str | None:
    """The first profile that adds a study to params.yaml; None if no profile does."""
    own = additions(contents())
    return next((name for name, blocks in own.items() if study in blocks.get("studies", {})), None)


def _switched(
    params: Mapping[str, Any], profile: str, profiles: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The content of params.yaml with a profile set; and the profiles whose blocks stay, with why.

    The values of the demo are set first, then those of the profile.
    """
    content, own = _copy(params), additions(profiles)
    removable, kept = _other_blocks(content, own, own[profile])
    for section, block in removable.values():
        del content[section][block]
    for name in dict.fromkeys((BASE, profile)):
        _merge(content, _without_removed(profiles[name], content, own[name]))
    return content, kept


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], kept: dict[str, str]
) -> Switch:
    """The difference between two flatten contents of params.yaml."""
    blocks = [dict.fromkeys(_block_of(k) for k in keys if "." in k) for keys in (before, after)]
    added, removed = ([b for b in blocks[i] if b not in blocks[1 - i]] for i in (1, 0))
    changes = [
        Change(key, before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key) and _block_of(key) not in {*added, *removed}
    ]
    return Switch(changes, added, removed, kept)


def _other_blocks(
    params: Any, own: Mapping[str, Blocks], wanted: Blocks
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """The blocks of other profiles to remove; and the profiles whose blocks stay, with why.

    `own` are the blocks of each profile, `wanted` those of the profile to set.
    """
    removable: dict[str, tuple[str, str]] = {}
    kept, values = {}, flatten(params)
    for name, blocks in own.items():
        present = _present(params, blocks, wanted)
        if not present:
            continue
        expected = {
            key: value for key, value in flatten(blocks).items() if _block_of(key) in present
        }
        actual = {key: value for key, value in values.items() if _block_of(key) in present}
        differing = [k for k in {**expected, **actual} if expected.get(k) != actual.get(k)]
        members = {block for _, block in present.values()}
        users = [
            key
            for key, value in values.items()
            if _block_of(key) not in present
            and str(value).removeprefix(f"{paths.MODELS}/") in members
        ]
        if reasons := [*differing, *users]:
            kept[name] = present, reasons[0]
        else:
            removable |= present
    # If two profiles add blocks of the same names, those of one of them are present.
    return removable, {
        name: reason for name, (present, reason) in kept.items() if present.keys() - removable
    }


def _present(params: Any, blocks: Blocks, wanted: Blocks) -> dict[str, tuple[str, str]]:
    """Section and name, by dotted key, of those blocks that params.yaml has and are not wanted."""
    return {
        f"{section}.{block}": (section, block)
        for section in blocks
        for block in blocks[section]
        if block in params.get(section, {}) and block not in wanted.get(section, {})
    }


def _without_removed(
    profile: Mapping[str, Any], params: Mapping[str, Any], own: Blocks
) -> dict[str, Any]:
    """A profile without the blocks that params.yaml lacks, except its `own`."""
    return {
        key: {
            name: _copy(block)
            for name, block in value.items()
            if name in params.get(key, {}) or name in own.get(key, {})
        }
        if isinstance(value, Mapping)
        else value
        for key, value in profile.items()
    }


def _copy(value: Any) -> Any:
    """A deep copy in which YAML aliases share nothing, so that a merge changes only one of them."""
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _block_of(key: str) -> str:
    """The first two parts of a dotted key: its block, or the key itself if it is in none."""
    return ".".join(key.split(".")[:2])


def _merge(target: Any, overlay: Mapping[str, Any]) -> None:
    """Merge the overlay into the target, block by block; an empty mapping is replaced."""
    for name, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(target.get(name), Mapping) and target[name]:
            _merge(target[name], value)
        elif name not in target or target[name] != value:
            target[name] = value
