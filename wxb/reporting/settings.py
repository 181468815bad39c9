"""The settings of a study's experiments, from params.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wxb.core.params import Params
from wxb.core.params.section import flatten


class Settings(NamedTuple):
    """Values by dotted key, one per experiment in their order."""

    names: Sequence[str]
    differing: dict[str, list[str]]
    common: dict[str, list[str]]


def settings(params: Params, names: Sequence[str]) -> Settings:
    """The settings of experiments and of their backbones, split by whether they differ."""
    columns = [_settings_of(params, name) for name in names]
    rows = {
        key: [column.get(key, "–") for column in columns]
        for key in dict.fromkeys(key for column in columns for key in column)
    }
    return Settings(
        names,
        differing={key: values for key, values in rows.items() if len(set(values)) > 1},
        common={key: values for key, values in rows.items() if len(set(values)) == 1},
    )


def structured(params: Params, backbones: Iterable[str]) -> list[str]:
    """The names in `backbones` of those that params.yaml builds from an `architecture`.

    Their initialization is structured (wxb/training/backbones/initialization.py).
    """
    blocks = params.backbones
    return [name for name in backbones if name in blocks and blocks[name].architecture]


def _settings_of(params: Params, name: str) -> dict[str, str]:
    experiment = params.experiments[name]
    block = experiment.model_dump(exclude={"study", "backbone"})
    backbone = {"name": experiment.backbone, **params.backbone_of(experiment).model_dump()}
    values = flatten({**block, "backbone": backbone})
    return {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in values.items()
        if value not in (None, {}, [])
    }
