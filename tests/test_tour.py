"""The notebook of docs/: it runs from its first cell to its last, in a project with a model."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests import trained

HOME = Path(__file__).resolve().parents[1]
TOUR = HOME / "docs/tour.ipynb"
MODEL = "ner-decoder-bidirectional"  # the one that the notebook loads


def outputs(notebook):
    """What the code cells gave, as their kinds of content and their text."""
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in found for kind in output.get("data", {})}
    return kinds, [output["text"] for output in found if output.output_type == "stream"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with the committed studies, and a small model in place of the demo's."""
    folder = trained.project(tmp_path_factory.mktemp("tour"))
    shutil.copytree(folder / "models/ner-encoder", folder / "models" / MODEL)
    shutil.copytree(HOME / "reports/studies", folder / "reports/studies")
    (folder / "docs").mkdir()
    return folder


@pytest.mark.slow
def test_it_runs_wherever_the_project_is(project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HOME))
    notebook = nbformat.read(TOUR, as_version=4)
    # Jupyter runs a notebook in the folder that it is in.
    place = {"metadata": {"path": project / "docs"}}
    NotebookClient(notebook, timeout=120, resources=place).execute()  # raises where a cell does
    kinds, (masked,) = outputs(notebook)
    assert {"text/html", "application/vnd.plotly.v1+json"} <= kinds
    assert masked.startswith("Yesterday <NAME> said hello.")


def test_it_is_kept_as_it_ran():
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    kinds, (masked,) = outputs(notebook)
    assert {"text/html", "application/vnd.plotly.v1+json"} <= kinds
    assert "<EMAIL>" in masked
    assert str(HOME) not in TOUR.read_text(encoding="utf-8")
    assert TOUR.stat().st_size < 100_000
