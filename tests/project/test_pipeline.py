import pytest

from tests.project_copy import ROOT
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import read_yaml

STAGES = {
    verb: block.get("do", block) for verb, block in read_yaml(ROOT / "dvc.yaml")["stages"].items()
}


@pytest.mark.parametrize("verb", sorted(STAGES.keys() - {"check", "compare", "download"}))
def test_every_run_is_kept_in_the_run_cache(verb):
    """DVC keeps no run with an output that it does not cache, unless it is a metric or a plot."""
    assert all(isinstance(out, str) for out in STAGES[verb]["outs"])


def test_metrics_of_dvc_are_headlines():
    assert {verb: stage["metrics"] for verb, stage in STAGES.items() if "metrics" in stage} == {
        "evaluate": [{(paths.HEADLINES / "${key}.json").as_posix(): {"cache": False}}]
    }


@pytest.mark.parametrize(
    "file", sorted((ROOT / paths.STUDIES).glob("*.json")), ids=lambda p: p.stem
)
def test_committed_headlines_are_those_of_studies(file):
    study = read_json(file)
    for name, system in study["systems"].items():
        key = study["headline"]
        assert read_json(ROOT / paths.HEADLINES / f"{name}.json") == {key: system[key]["value"]}


@pytest.mark.parametrize("verb", STAGES)
def test_every_stage_writes_its_cost_and_depends_on_code_that_exists(verb):
    stage = STAGES[verb]
    if verb not in ("check", "compare"):  # compare has no run cache: its cost would change dvc.lock
        assert paths.cost(verb, "${key}").as_posix() in [
            path for out in stage["outs"] for path in ([out] if isinstance(out, str) else out)
        ]
    if verb != "check":
        assert stage["cmd"] == f"python -m stages.{verb} ${{key}}"
    code = [path for path in stage["deps"] if path.startswith(("stages/", "wxb/"))]
    assert f"stages/{verb}.py" in code
    assert [path for path in code if "$" not in path and not (ROOT / path).exists()] == []
