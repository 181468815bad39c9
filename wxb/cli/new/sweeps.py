"""Add a grid of settings of one experiment to params.yaml, as a study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from wxb.core.errors import WxbError
from wxb.core.params import ParamsError
from wxb.project import params_file
from wxb.project.params_file import parse, to_yaml

Grid = Mapping[str, Sequence[Any]]  # values by dotted key, such as training.learning_rate


def parse_grid(settings: Sequence[str]) -> dict[str, list[Any]]:
    """Values by key from settings such as `training.learning_rate=0.001,0.002`.

    Raises WxbError for other forms.
    """
    grid = {}
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not (key and equals and values):
            raise WxbError(
                f"--set: found {setting!r}; expected a key of an experiment and its values, such as"
                " training.learning_rate=0.001,0.002"
            )
        grid[key] = parse(f"[{values}]")
    return grid


def add_sweep(text: str, name: str, like: str, grid: Grid, seeds: Sequence[int], title: str) -> str:
    """The text of params.yaml with a study, and an experiment for each combination of values.

    These are copies of the experiment `like`. Raises WxbError if a name is taken, and ParamsError
    if `like` does not exist.
    """
    params_file.check_name_is_free(text, "studies", name)
    ((_, copied),) = parse(params_file.block_text(text, "experiments", like)).items()
    members = []
    for values in product(*grid.values()):
        member = "-".join([name, *(re.sub(r"[^\w-]", "_", str(value)) for value in values)])
        block = {**copied, "study": name}
        for key, value in zip(grid, values, strict=True):
            block = _with_value(block, key.split("."), value, like)
        text = params_file.add_block(text, "experiments", to_yaml({member: block}))
        members.append(member)
    content = {
        "task": copied["task"],
        "title": title,
        "seed": seeds[0] if len(seeds) == 1 else [*seeds],
        "experiments": members,
    }
    return params_file.add_block(text, "studies", to_yaml({name: content}))


def _with_value(
    block: Mapping[str, Any], keys: Sequence[str], value: Any, like: str
) -> dict[str, Any]:
    """A block with a value at nested keys, which are added if they are missing."""
    first, *rest = keys
    if not rest:
        return {**block, first: value}
    inner = block.get(first) or {}
    if not isinstance(inner, Mapping):
        raise ParamsError(f"experiments.{like}.{first}: found {inner!r}; expected settings in it")
    return {**block, first: _with_value(inner, rest, value, like)}
