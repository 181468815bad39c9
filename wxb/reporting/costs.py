"""What the stages of a study cost: time, memory and parameters, as far as this machine measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params

Costs = Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>


class Row(NamedTuple):
    """What pretraining one backbone, or training and evaluating one experiment, cost."""

    name: str
    trained: int | None  # parameters that were learnt; None where nobody counted
    stages: dict[str, Mapping[str, Any] | None]  # cost by verb; None where it was not measured
    users: Sequence[str] = ()  # of a backbone: the experiments that start from it

    @property
    def devices(self) -> str:
        """The machines of the stages that were measured; empty where none was."""
        return ", then ".join(machines([self]))

    @property
    def measured(self) -> list[Mapping[str, Any]]:
        """The costs that are known."""
        return [cost for cost in self.stages.values() if cost is not None]


class Wall(NamedTuple):
    """The time from pretraining to evaluation, and the machines that it ran on."""

    seconds: float
    devices: str


def machines(rows: Sequence[Row]) -> list[str]:
    """The machines on which anything was measured, in the order of the rows."""
    return list(dict.fromkeys(cost["device"] for row in rows for cost in row.measured))


def days(rows: Sequence[Row]) -> str:
    """The day on which it was measured, or the first and the last, as ISO dates."""
    found = sorted({cost["finished"][:10] for row in rows for cost in row.measured})
    return " to ".join(dict.fromkeys([*found[:1], *found[-1:]]))


def stages_of(params: Params, name: str) -> list[str]:
    """The stages of an experiment that take the time; the first is its backbone's."""
    return [begun_by(params, name), f"train@{name}", f"evaluate@{name}"]


def begun_by(params: Params, name: str) -> str:
    """The stage that makes the model which an experiment begins with."""
    backbone = params.experiments[name].backbone
    return f"{'train' if backbone in params.experiments else 'pretrain'}@{backbone}"


def of_experiments(systems: Mapping[str, Any], costs: Costs) -> list[Row]:
    """A row for each experiment: its own training and evaluation."""
    return [
        Row(
            name,
            system["trainable_parameters"],
            {verb: costs.get(f"{verb}@{name}") for verb in ("train", "evaluate")},
        )
        for name, system in systems.items()
    ]


def of_backbones(
    params: Params, names: Sequence[str], pretrained: Mapping[str, Any], costs: Costs
) -> list[Row]:
    """A row for each backbone of the experiments `names`, which share its pretraining."""
    users: dict[str, list[str]] = {}
    for name in names:
        users.setdefault(params.experiments[name].backbone, []).append(name)
    return [
        Row(
            backbone,
            pretrained.get(backbone, {}).get("trainable_parameters"),
            {"pretrain": costs.get(begun_by(params, shared[0]))},
            shared,
        )
        for backbone, shared in users.items()
    ]


def seconds(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Seconds by name, then by verb, of what was measured; a name without any is left out."""
    measured = {
        row.name: {verb: cost["seconds"] for verb, cost in row.stages.items() if cost}
        for row in rows
    }
    return {name: spent for name, spent in measured.items() if spent}


def of_training(comparison: Mapping[str, Any], costs: Costs) -> dict[str, float]:
    """Seconds of training by experiment, for one seed, as far as they were measured."""
    found = {name: costs.get(f"train@{name}") for name in comparison["systems"]}
    seeds = len(comparison["seeds"])
    return {name: cost["seconds"] / seeds for name, cost in found.items() if cost}


def read_training(comparison: Mapping[str, Any]) -> dict[str, float]:
    """What `of_training` gives of the costs that were measured here."""
    files = {f"train@{name}": paths.cost("train", name) for name in comparison["systems"]}
    costs = {stage: read_json(path) for stage, path in files.items() if path.is_file()}
    return of_training(comparison, costs)


def wall(params: Params, name: str, costs: Costs) -> Wall | None:
    """The time of all stages of an experiment; None unless all of it was measured."""
    stages = [costs.get(stage) for stage in stages_of(params, name)]
    measured = [cost for cost in stages if cost is not None]
    if len(measured) < len(stages):
        return None
    devices = dict.fromkeys(cost["device"] for cost in measured)
    return Wall(sum(cost["seconds"] for cost in measured), ", then ".join(devices))
