"""A study of one experiment at several settings: every combination of the values of some keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from wxb.core.errors import WxbError
from wxb.core.params import ParamsError
from wxb.project import params_file
from wxb.project.params_file import parse, rendered

Grid = Mapping[str, Sequence[Any]]  # values by dotted key, such as training.learning_rate


def grid(settings: Sequence[str]) -> dict[str, list[Any]]:
    """The values of `training.learning_rate=0.001,0.002`, and others. Raises WxbError else."""
    found = {}
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not (key and equals and values):
            raise WxbError(
                f"--set: found {setting!r}; expected a key of an experiment and its values, such as"
                " training.learning_rate=0.001,0.002"
            )
        found[key] = parse(f"[{values}]")
    return found


def sweep(text: str, name: str, like: str, values: Grid, seeds: Sequence[int], title: str) -> str:
    """The text of params.yaml with a study, and an experiment for each combination of values.

    They are copies of the experiment `like`, and begin with its backbone. Raises WxbError where a
    block of such a name is there already, and ParamsError where there is none to copy.
    """
    params_file.check_new(text, "studies", name)
    ((_, copied),) = parse(params_file.block(text, "experiments", like)).items()
    members = []
    for chosen in product(*values.values()):
        member = "-".join([name, *(re.sub(r"[^\w-]", "_", str(value)) for value in chosen)])
        block = {**copied, "study": name}
        for key, value in zip(values, chosen, strict=True):
            block = _with(block, key.split("."), value, like)
        text = params_file.with_block(text, "experiments", rendered({member: block}))
        members.append(member)
    content = {
        "task": copied["task"],
        "title": title,
        "seed": seeds[0] if len(seeds) == 1 else [*seeds],
        "experiments": members,
    }
    return params_file.with_block(text, "studies", rendered({name: content}))


def _with(block: Mapping[str, Any], place: Sequence[str], value: Any, like: str) -> dict[str, Any]:
    """A block with another value at a place, which its own settings or defaults may lead to."""
    first, *rest = place
    if not rest:
        return {**block, first: value}
    inner = block.get(first) or {}
    if not isinstance(inner, Mapping):
        raise ParamsError(f"experiments.{like}.{first}: found {inner!r}; expected settings in it")
    return {**block, first: _with(inner, rest, value, like)}
