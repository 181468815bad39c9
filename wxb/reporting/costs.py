"""Time, memory and parameters of a study's stages, as far as they were measured on this machine."""

from collections.abc import Mapping
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
        measured = [costs.get(stage) for stage in experiment_stages(params, name)]
        known = [cost for cost in measured if cost]
        seconds = [cost["seconds"] if cost else None for cost in measured]
        total = sum(cost["seconds"] for cost in known) if len(known) == len(measured) else None
        memory = [max((cost.get(k, 0) for cost in known), default=0) * 2**20 for k in MEMORY]
        evaluation, trained = measured[-1] or {}, system["trainable_parameters"]
        predicting = evaluation.get("predicting")
        speed = evaluation["inputs"] / predicting if predicting else None
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
