"""Random edits, faults and runs of a project: only stages run that have to, with the same bytes."""

import pytest

from tests.project import trust


@pytest.mark.slow
def test_random_steps():
    trust.run_projects(4, derandomize=True)


@pytest.mark.parametrize("fault", ["stale", "needless"])
def test_the_oracle_sees_a_stage_that_is_left_out_or_runs_needlessly(fault, monkeypatch):
    project = trust.Project()
    project.create()
    project.run("", trust.by_dvc)
    if fault == "stale":
        trust.Path("raw/names/train.txt").write_text("2\n")
        engine = print
    else:

        def engine(target):
            trust.STARTED.write_text("models/encoder\n")

    with pytest.raises(AssertionError, match="other bytes" if fault == "stale" else "up to date"):
        project.run("", engine)
    project.teardown()
