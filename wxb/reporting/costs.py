"""Time, memory and parameters of a study's stages, as far as they were measured on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params

Costs = Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>


class CostRow(NamedTuple):
    """The cost of pretraining a backbone, or of training and evaluating an experiment."""

    name: str
    trainable: int | None  # trainable parameters; None if unknown
    stages: dict[str, Mapping[str, Any] | None]  # cost by verb; None if not measured
    users: Sequence[str] = ()  # the experiments on a backbone

    @property
    def devices(self) -> str:
        """The machines of the measured stages; empty if there are none."""
        return ", then ".join(machines([self]))

    @property
    def measured(self) -> list[Mapping[str, Any]]:
        """The costs of the measured stages."""
        return [cost for cost in self.stages.values() if cost is not None]


class WallTime(NamedTuple):
    """The time from pretraining to evaluation, and the machines."""

    seconds: float
    devices: str


def machines(rows: Sequence[CostRow]) -> list[str]:
    """The machines of all measured stages, in the order of the rows."""
    return list(dict.fromkeys(cost["device"] for row in rows for cost in row.measured))


def dates(rows: Sequence[CostRow]) -> str:
    """The first and the last date of all measured stages: "2030-01-02 to 2030-02-03"."""
    days = sorted({cost["finished"][:10] for row in rows for cost in row.measured})
    return " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))


def experiment_stages(params: Params, name: str) -> list[str]:
    """The stages of an experiment that take most time, from that of its backbone to evaluate."""
    return [backbone_stage(params, name), f"train@{name}", f"evaluate@{name}"]


def backbone_stage(params: Params, name: str) -> str:
    """The stage that makes the backbone of an experiment: `pretrain`, or another's `train`."""
    backbone = params.experiments[name].backbone
    return f"{'train' if backbone in params.experiments else 'pretrain'}@{backbone}"


def experiment_rows(systems: Mapping[str, Any], costs: Costs) -> list[CostRow]:
    """A row for each experiment: its own training and evaluation."""
    return [
        CostRow(
            name,
            system["trainable_parameters"],
            {verb: costs.get(f"{verb}@{name}") for verb in ("train", "evaluate")},
        )
        for name, system in systems.items()
    ]


def backbone_rows(
    params: Params, names: Sequence[str], pretrained: Mapping[str, Any], costs: Costs
) -> list[CostRow]:
    """A row for each backbone of some experiments, which share its pretraining."""
    users: dict[str, list[str]] = {}
    for name in names:
        users.setdefault(params.experiments[name].backbone, []).append(name)
    return [
        CostRow(
            backbone,
            pretrained.get(backbone, {}).get("trainable_parameters"),
            {"pretrain": costs.get(backbone_stage(params, members[0]))},
            members,
        )
        for backbone, members in users.items()
    ]


def seconds(rows: Sequence[CostRow]) -> dict[str, dict[str, float]]:
    """Measured seconds by name, then by verb; names without any are left out."""
    by_name = {
        row.name: {verb: cost["seconds"] for verb, cost in row.stages.items() if cost}
        for row in rows
    }
    return {name: by_verb for name, by_verb in by_name.items() if by_verb}


def training_seconds(comparison: Mapping[str, Any], costs: Costs) -> dict[str, float]:
    """Seconds of training per seed by experiment; those not measured are left out."""
    by_name = {name: costs.get(f"train@{name}") for name in comparison["systems"]}
    seeds = len(comparison["seeds"])
    return {name: cost["seconds"] / seeds for name, cost in by_name.items() if cost}


def read_training_seconds(comparison: Mapping[str, Any]) -> dict[str, float]:
    """`training_seconds` from the cost files in reports/."""
    files = {f"train@{name}": paths.cost("train", name) for name in comparison["systems"]}
    costs = {stage: read_json(path) for stage, path in files.items() if path.is_file()}
    return training_seconds(comparison, costs)


def wall_time(params: Params, name: str, costs: Costs) -> WallTime | None:
    """The total time of an experiment's stages; None unless all were measured."""
    stages = [costs.get(stage) for stage in experiment_stages(params, name)]
    measured = [cost for cost in stages if cost is not None]
    if len(measured) < len(stages):
        return None
    devices = dict.fromkeys(cost["device"] for cost in measured)
    return WallTime(sum(cost["seconds"] for cost in measured), ", then ".join(devices))
