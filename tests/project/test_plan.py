"""Plans and stamps, which Snakemake reads instead of calling DVC."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.project.engines import (
    Stage,
    Target,
    is_helpful,
    read_plan,
    targets,
    write_plan,
    write_stamps,
)


def test_a_lesson_is_a_target_too() -> None:
    files = ["reports/gates.html", "reports/metrics/lessons/gates.json"]
    assert targets([Stage("lesson@gates", (), is_due=False)]) == {
        "gates": Target("lesson@gates", files)
    }


@given(due=st.lists(st.booleans(), max_size=12))
def test_stages_that_are_not_due_have_stamps_in_order(
    due: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stamps")
    stages = [Stage(f"verb@{index}", (), is_due) for index, is_due in enumerate(due)]
    write_stamps(stages, folder)
    stamps = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [stamp.name for stamp in stamps] == [s.name for s in stages if not s.is_due]


def test_other_machines_read_the_plan(tmp_path):
    stages = [Stage("check@a", (), False), Stage("train@a", ("check@a",), True)]
    write_plan(stages, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == stages


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("2 jobs have missing provenance/metadata so that it in part cannot be used", False),
        ("Missing metadata for file", False),
        ("Nothing to be done", True),
    ],
)
def test_warnings_about_missing_history_are_dropped(message, shown):
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, message, (), None)
    assert is_helpful(record) is shown
