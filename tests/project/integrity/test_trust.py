import json

import pytest

from tests.project.integrity import kills, trust
from tests.project.integrity.machine import Project


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """Run the command with stubs: 40 steps a call, one kill; returns its exit status and counts."""

    def run_projects(number):
        Project.counts["steps"] += 40

    def run_kills(folder, engine, number, counts, *options):
        counts["stopped"] += 1

    def run(failing=None, error=None, holds=True):
        if failing:
            module, name = failing
            function = getattr(module, name)

            def fail(*arguments, **options):
                function(*arguments, **options)
                raise error

            monkeypatch.setattr(module, name, fail)
        monkeypatch.setattr(trust, "laws_hold", lambda inputs: holds)
        output = tmp_path / "trust.json"
        with pytest.raises(SystemExit) as exit_:
            trust.main([str(output), "--steps", "100", "--kills", "2"])
        rows = json.loads(output.read_text())["rows"]
        return int(exit_.value.code), {row["count"]: row["number"] for row in rows}

    monkeypatch.setattr(Project, "counts", type(Project.counts)())
    monkeypatch.setattr(Project, "has_snakemake", False)
    monkeypatch.setattr(trust, "run_projects", run_projects)
    monkeypatch.setattr(kills, "run", run_kills)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", "")
    return run


def test_nothing_failed(figures):
    status, counts = figures()
    assert status == 0
    assert counts["random edits and faults"] == 120
    assert counts["kills of dvc"] == counts["kills of snakemake"] == 1
    assert counts["failures"] == 0


@pytest.mark.parametrize(
    ("failing", "failures"), [((trust, "run_projects"), 3), ((kills, "run"), 2)]
)
def test_failures_are_counted(figures, failing, failures):
    status, counts = figures(failing, AssertionError("a missed byte"))
    assert (status, counts["failures"]) == (1, failures)
    assert counts["kills of snakemake"] == 1


def test_laws_that_fail(figures):
    assert figures(holds=False)[0] == 1


def test_a_project_that_cannot_be_created_ends_the_steps(figures, monkeypatch):
    def fail(number):
        raise OSError

    monkeypatch.setattr(trust, "run_projects", fail)
    status, counts = figures()
    assert (status, counts["failures"], counts["random edits and faults"]) == (1, 1, 0)


@pytest.mark.parametrize("key", ["disagreements", "wrong", "refusals"])
def test_counts_of_the_machine_fail(figures, key):
    Project.counts[key] += 1
    assert figures()[0] == 1
