"""Time, memory and parameters of a study's stages, as far as they were measured on this machine."""

from collections.abc import Iterable, Mapping
from typing import Any

from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.reporting.formatting import Cell, Table, amount, duration, size

MEMORY = ("peak_memory_mib", "peak_gpu_memory_mib")

Costs = Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>


def experiment_stages(params: Params, name: str) -> list[str]:
    """Three stages of an experiment, run or not: its backbone's pretrain or train, its own two."""
    backbone = params.experiments[name].backbone
    first = "train" if backbone in params.experiments else "pretrain"
    return [f"{first}@{backbone}", f"train@{name}", f"evaluate@{name}"]


def cost_table(params: Params, systems: Mapping[str, Any], costs: Costs) -> Table:
    """A row for each experiment: trained parameters, backbone, time by stage, peak memory, speed.

    The total needs all stages. A cell without a measurement is "–"; empty columns are left out.
    """
    rows = []
    for name, system in systems.items():
        measured = [costs.get(stage, {}) for stage in experiment_stages(params, name)]
        seconds = [cost.get("seconds") for cost in measured]
        total = sum(cost["seconds"] for cost in measured) if all(measured) else None
        memory = [max(cost.get(key, 0) for cost in measured) * 2**20 for key in MEMORY]
        predicting, trained = measured[-1].get("predicting"), system["trainable_parameters"]
        speed = measured[-1]["inputs"] / predicting if predicting else None
        row = [name, Cell(amount(trained), trained), params.experiments[name].backbone]
        row += [Cell("–" if s is None else duration(s), s) for s in [*seconds, total]]
        row += [Cell(size(peak) if peak else "–", peak) for peak in memory]
        rows.append([*row, Cell("–" if speed is None else amount(speed), speed)])
    titles = ["pretraining", "training", "evaluation", "total", "peak memory", "GPU memory"]
    header = ["experiment", "trained parameters", "backbone", *titles, "inputs a second"]
    columns = [i for i in range(len(header)) if any(row[i] != "–" for row in rows)]
    cells = [[row[i] for i in columns] for row in rows]
    return Table("Cost of each experiment", [header[i] for i in columns], cells)


def measured_on(costs: Costs) -> str:
    """The machines and the dates of all measured stages, in a sentence; empty without any."""
    if not costs:
        return ""
    machines = ", then ".join(dict.fromkeys(cost["device"] for cost in costs.values()))
    days = sorted({cost["finished"][:10] for cost in costs.values()})
    return f"Measured on {machines}, {' to '.join(dict.fromkeys([days[0], days[-1]]))}."


def read(stages: Iterable[str]) -> Costs:
    """The content of the stages' cost files in reports/, as far as they exist."""
    files = {stage: paths.cost(*stage.split("@")) for stage in stages}
    return {stage: read_json(path) for stage, path in files.items() if path.is_file()}


def training_seconds(comparison: Mapping[str, Any], costs: Costs | None = None) -> dict[str, float]:
    """Seconds of training per seed by measured experiment; default: with `costs` from reports/."""
    stages = {name: f"train@{name}" for name in comparison["systems"]}
    costs = read(stages.values()) if costs is None else costs
    seeds = len(comparison["seeds"])
    return {name: costs[s]["seconds"] / seeds for name, s in stages.items() if s in costs}
