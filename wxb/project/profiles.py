"""Sizes of a run and public data: `params/<profile>.yaml` states what to set in params.yaml.

`params/demo.yaml` states every key that a profile may set; the others only what differs from it,
and whole blocks of their own, which go again when another profile is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from ruamel.yaml import YAML

from wxb.core import paths
from wxb.core.params import PARAMS, ParamsError, read_yaml
from wxb.core.params.section import flat
from wxb.project import params_file

if TYPE_CHECKING:
    from wxb.project.revisions import Tree

FOLDER = Path("params")
BASE = "demo"

Blocks = dict[str, dict[str, Any]]  # by section and name


class Change(NamedTuple):
    """A key of params.yaml (dotted) that a profile changed, and its values before and after."""

    key: str
    before: Any
    after: Any


class Switch(NamedTuple):
    """What a profile did to params.yaml: keys it changed, and whole blocks (`corpora.weibo`)."""

    changes: list[Change]
    added: list[str]
    removed: list[str]
    kept: dict[str, str]  # other profiles whose blocks stay, and a key that is the reason

    @property
    def size(self) -> int:
        """How many keys and blocks of params.yaml are others now."""
        return len(self.changes) + len(self.added) + len(self.removed)


def names() -> list[str]:
    """The profiles there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def switch(profile: str, path: Path = PARAMS) -> Switch:
    """Set what the profile states in params.yaml; all else, comments included, stays.

    Blocks of the demo that params.yaml no longer has stay removed. Those that another profile added
    are taken away again, unless one of them was changed or is used by a block from elsewhere.

    Raises ParamsError when there is no such profile, or when the outcome would not be valid.
    """
    if profile not in names():
        raise ParamsError(f"no profile {profile!r} in {FOLDER}/; there is: {', '.join(names())}")
    text = params_file.read(path)
    before = params_file.parse(text)
    after, kept = _switched(before, profile, _contents())
    params_file.write(params_file.updated(text, after), path)
    return _compared(flat(before), flat(after), kept)


def sizes(path: Path = PARAMS) -> dict[str, int]:
    """How many keys and blocks of a valid params.yaml each profile would change, by its name."""
    params, profiles = read_yaml(path), _contents()
    found = {}
    for name in profiles:
        content, kept = _switched(params, name, profiles)
        found[name] = _compared(flat(params), flat(content), kept).size
    return found


def _contents() -> dict[str, Any]:
    """The content of every profile in the working folder, by name."""
    return {name: read_yaml(FOLDER / f"{name}.yaml") for name in names()}


def _switched(
    params: Mapping[str, Any], profile: str, profiles: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The content of params.yaml with a profile set; and profiles whose blocks stay, with why.

    It is what the demo states, and then what the profile does.
    """
    content, own = _plain(params), additions(profiles)
    foreign, kept = _foreign(content, own, own[profile])
    for section, block in foreign.values():
        del content[section][block]
    for name in dict.fromkeys((BASE, profile)):
        _merge(content, _without_removed(profiles[name], content, own[name]))
    return content, kept


def _compared(before: Mapping[str, Any], after: Mapping[str, Any], kept: dict[str, str]) -> Switch:
    """What is other in the flat content of params.yaml."""
    blocks = [dict.fromkeys(_place(k) for k in keys if "." in k) for keys in (before, after)]
    added, removed = ([b for b in blocks[i] if b not in blocks[1 - i]] for i in (1, 0))
    changes = [
        Change(key, before.get(key), after.get(key))
        for key in {**before, **after}
        if before.get(key) != after.get(key) and _place(key) not in {*added, *removed}
    ]
    return Switch(changes, added, removed, kept)


def of(tree: Tree) -> dict[str, Any]:
    """The content of every profile that a tree of files has, by name."""
    files = [PurePath(file) for file in tree.files(str(FOLDER))]
    yaml = YAML(typ="safe")
    return {
        file.stem: yaml.load(tree.read(str(file)) or b"{}")
        for file in files
        if file.suffix == ".yaml"
    }


def additions(profiles: Mapping[str, Any]) -> dict[str, Blocks]:
    """The blocks that each profile adds to params.yaml: those that the demo does not state."""
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


def bringing(study: str) -> str | None:
    """The profile that adds a study to params.yaml; None where none does."""
    own = additions(_contents())
    return next((name for name, blocks in own.items() if study in blocks.get("studies", {})), None)


def _foreign(
    params: Any, own: Mapping[str, Blocks], wanted: Blocks
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """The blocks of profiles that are not `wanted`; and for profiles whose blocks stay, why."""
    going: dict[str, tuple[str, str]] = {}
    staying = {}
    for name, blocks in own.items():
        places = _places(params, blocks, wanted)
        stated = {key: value for key, value in flat(blocks).items() if _place(key) in places}
        found = {key: value for key, value in flat(params).items() if _place(key) in places}
        differing = [key for key in {**stated, **found} if stated.get(key) != found.get(key)]
        members = {block for _, block in places.values()}
        users = [
            key
            for key, value in flat(params).items()
            if _place(key) not in places and str(value).removeprefix(f"{paths.MODELS}/") in members
        ]
        if why := [*differing, *users]:
            staying[name] = places, why[0]
        else:
            going |= places
    # Two profiles may add blocks of the same names: then those of one of them are there.
    return going, {name: why for name, (places, why) in staying.items() if places.keys() - going}


def _places(params: Any, blocks: Blocks, wanted: Blocks) -> dict[str, tuple[str, str]]:
    """Those of the blocks that params.yaml has and that are not `wanted`, by dotted key."""
    return {
        f"{section}.{block}": (section, block)
        for section in blocks
        for block in blocks[section]
        if block in params.get(section, {}) and block not in wanted.get(section, {})
    }


def _without_removed(
    profile: Mapping[str, Any], params: Mapping[str, Any], own: Blocks
) -> dict[str, Any]:
    """A profile without the blocks of sections that params.yaml lacks, but for those of its own."""
    return {
        key: {
            name: _plain(block)
            for name, block in value.items()
            if name in params.get(key, {}) or name in own.get(key, {})
        }
        if isinstance(value, Mapping)
        else value
        for key, value in profile.items()
    }


def _plain(value: Any) -> Any:
    """A copy without shared parts: YAML aliases share them, and a merge changes one of them."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _place(key: str) -> str:
    """The block that a dotted key is in, or the key where it is in none."""
    return ".".join(key.split(".")[:2])


def _merge(target: Any, overlay: Mapping[str, Any]) -> None:
    """Lay the overlay over the target, block by block; `{}` gives way, being on one line."""
    for name, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(target.get(name), Mapping) and target[name]:
            _merge(target[name], value)
        elif name not in target or target[name] != value:
            target[name] = value
