import subprocess
import sys

import pytest

from tests import import_traces
from tests.project_copy import ROOT
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.project import pipeline

STAGES = import_traces.PIPELINE["stages"]


def test_dvc_yaml_is_generated_from_pipeline_yaml():
    output = subprocess.run(
        [sys.executable, "-m", "wxb.project.pipeline"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert (ROOT / "dvc.yaml").read_text() == output, f"run `{pipeline.COMMAND}`"


@pytest.mark.parametrize("verb", sorted(STAGES.keys() - {"compare"}))
def test_every_run_is_kept_in_the_run_cache(verb):
    """DVC keeps no run with an output that it does not cache, unless it is a metric or a plot."""
    assert all(isinstance(out, str) for out in STAGES[verb].get("outs", []))


def test_metrics_of_dvc_are_headlines():
    assert {verb: stage["metrics"] for verb, stage in STAGES.items() if "metrics" in stage} == {
        "evaluate": [{paths.headline("${key}").as_posix(): {"cache": False}}]
    }


@pytest.mark.parametrize(
    "file", sorted((ROOT / paths.STUDIES).glob("*.json")), ids=lambda p: p.stem
)
def test_committed_headlines_are_those_of_studies(file):
    study = read_json(file)
    for name, system in study["systems"].items():
        key = study["headline"]
        assert read_json(ROOT / paths.headline(name)) == {key: system[key]["value"]}


def test_dependencies_are_data_base_groups_and_own_code():
    text = pipeline.dvc_yaml(
        {
            "groups": {
                "base": ["wxb/core/files.py"],
                "text": ["wxb/corpora/text"],
                "other": ["wxb/other"],
            },
            "stages": {
                "first": {"desc": "Begin", "deps": ["raw"], "outs": ["made"]},
                "then": {
                    "foreach": "${blocks}",
                    "desc": "Go on",
                    "deps": ["made"],
                    "groups": ["text"],
                    "code": ["wxb/alone.py"],
                    "metrics": [{"kept/${key}.json": {"cache": False}}],
                },
            },
        }
    )
    assert (
        text
        == """\
# Made from pipeline.yaml by `python -m wxb.project.pipeline > dvc.yaml`; edit that.

stages:
  first:
    desc: Begin
    cmd: python -m stages.first
    deps:
      - raw
      - stages/first.py
      - wxb/core/files.py
    outs:
      - made

  then:
    foreach: ${blocks}
    do:
      desc: Go on
      cmd: python -m stages.then ${key}
      deps:
        - made
        - stages/then.py
        - wxb/alone.py
        - wxb/core/files.py
        - wxb/corpora/text
      metrics:
        - kept/${key}.json:
            cache: false
      outs:
        - reports/cost/then/${key}.json
"""
    )


def test_an_unknown_group_is_an_error_with_the_nearest_name():
    content = {"groups": {"base": [], "trainer": []}, "stages": {"train": {"groups": ["trayner"]}}}
    with pytest.raises(WxbError, match=r"stages.train.groups: .*'trayner'; did you mean 'trainer'"):
        pipeline.code_by_group(content, "train")


def test_every_group_is_used_and_every_path_exists():
    used = {
        name for verb in STAGES for name in pipeline.code_by_group(import_traces.PIPELINE, verb)
    }
    assert used >= import_traces.GROUPS.keys()
    files = {
        path
        for verb in STAGES
        for paths in pipeline.code_by_group(import_traces.PIPELINE, verb).values()
        for path in paths
    }
    assert [path for path in sorted(files) if "$" not in path and not (ROOT / path).exists()] == []


def test_errors_of_missing_and_unused_code_name_the_groups():
    assert import_traces.missing_message("compare", "wxb/training/trainer.py") == (
        "compare imports wxb/training/trainer.py, which neither its groups (base, gold, metrics)"
        " nor its own `code` contain: add the group trainer, or add it to `code` of compare in"
        " pipeline.yaml, then run `python -m wxb.project.pipeline > dvc.yaml`"
    )
    assert "add it to one of them" in import_traces.missing_message("compare", "wxb/new.py")
    assert "which its group gold contains" in import_traces.unused_message(
        "compare", "wxb/tasks/ner/record/spans.py"
    )
    assert "which its `code` contains" in import_traces.unused_message(
        "compare", "wxb/reporting/charts/pairs.py"
    )
