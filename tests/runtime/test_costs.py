import json

import torch

from tests.runtime.toy import python
from wxb.runtime import costs


def test_the_cost_is_written_to_its_own_file(project):
    python(project, "toy.py", "good")
    cost = json.loads((project / "reports/cost/toy/good.json").read_text())
    assert sorted(cost)[:3] == ["cpu", "device", "finished"]
    assert cost["seconds"] >= 0
    assert 10 < cost["peak_memory_mib"] < 10_000
    assert cost["finished"].endswith("+00:00")
    assert cost["device"] == f"{cost['cpu']}, 3 CPU thread(s)"


def test_with_torch_the_cost_has_the_instruction_set():
    cost = costs.process_cost(1.0)
    assert cost["capability"] == torch.backends.cpu.get_cpu_capability()
    assert cost["torch"] == torch.__version__
