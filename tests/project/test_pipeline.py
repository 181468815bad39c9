import subprocess
import sys

import pytest

from tests import traced
from tests.copied import ROOT
from wxb.core.errors import WxbError
from wxb.project import pipeline

STAGES = traced.PIPELINE["stages"]


def test_dvc_yaml_is_made_from_pipeline_yaml():
    printed = subprocess.run(
        [sys.executable, "-m", "wxb.project.pipeline"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert (ROOT / "dvc.yaml").read_text() == printed, f"run `{pipeline.COMMAND}`"


def test_a_stage_depends_on_its_data_the_base_its_groups_and_its_own_code():
    made = pipeline.dvc_yaml(
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
        made
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


def test_an_unknown_group_is_refused_with_the_nearest():
    content = {"groups": {"base": [], "trainer": []}, "stages": {"train": {"groups": ["trayner"]}}}
    with pytest.raises(WxbError, match=r"stages.train.groups: .*'trayner'; did you mean 'trainer'"):
        pipeline.code(content, "train")


def test_every_group_is_used_and_every_path_exists():
    used = {name for verb in STAGES for name in pipeline.code(traced.PIPELINE, verb)}
    assert used >= traced.GROUPS.keys()
    named = {
        path
        for verb in STAGES
        for paths in pipeline.code(traced.PIPELINE, verb).values()
        for path in paths
    }
    assert [path for path in sorted(named) if "$" not in path and not (ROOT / path).exists()] == []


def test_what_a_stage_imports_and_does_not_name_is_reported_with_its_groups():
    assert traced.lacks("compare", "wxb/training/trainer.py") == (
        "compare imports wxb/training/trainer.py, which none of its groups (base, gold, metrics)"
        " and not its own `code` holds: add the group trainer, or add it to `code` of compare in"
        " pipeline.yaml, then run `python -m wxb.project.pipeline > dvc.yaml`"
    )
    assert "add it to one of them" in traced.lacks("compare", "wxb/new.py")
    named = "which its group gold holds"
    assert named in traced.has_unused("compare", "wxb/tasks/ner/record/spans.py")
    assert "which its `code` holds" in traced.has_unused("compare", "wxb/reporting/charts/pairs.py")
