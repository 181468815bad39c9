"""The notebook docs/tour.ipynb runs, and its committed outputs are those of a run."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

HOME = Path(__file__).resolve().parents[1]
TOUR = HOME / "docs/tour.ipynb"
MODEL = "ner-decoder-bidirectional"  # loaded by the notebook


def outputs(notebook):
    """The MIME types of the outputs of code cells, and their printed texts."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    types = {type_ for output in outputs for type_ in output.get("data", {})}
    return types, [output["text"] for output in outputs if output.output_type == "stream"]


@pytest.fixture(scope="module")
def project(ner_project):
    """A project with the committed studies, and a small model instead of the demo's."""
    shutil.copytree(ner_project / "models/ner-encoder", ner_project / "models" / MODEL)
    shutil.copytree(HOME / "reports/studies", ner_project / "reports/studies")
    (ner_project / "docs").mkdir()
    return ner_project


@pytest.mark.slow
def test_the_notebook_runs_in_any_folder(project, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HOME))
    notebook = nbformat.read(TOUR, as_version=4)
    # Jupyter runs a notebook in its folder.
    resources = {"metadata": {"path": project / "docs"}}
    NotebookClient(notebook, timeout=120, resources=resources).execute()  # raises if a cell does
    types, (masked,) = outputs(notebook)
    assert {"text/html", "application/vnd.plotly.v1+json"} <= types
    assert masked.startswith("Yesterday <NAME> said hello.")


def test_committed_outputs_are_those_of_a_run():
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    types, (masked,) = outputs(notebook)
    assert {"text/html", "application/vnd.plotly.v1+json"} <= types
    assert "<EMAIL>" in masked
    assert str(HOME) not in TOUR.read_text(encoding="utf-8")
    assert TOUR.stat().st_size < 100_000
