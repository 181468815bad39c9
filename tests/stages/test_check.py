"""The stage before all others."""

import shutil

import pytest

from stages.check import CHECKED, main
from tests.copied import ROOT


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The working folder, with the committed parameters."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    return tmp_path


def edit(project, old, new):
    path = project / "params.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_mark_is_the_same_for_all_parameters(project):
    main()
    mark = CHECKED.read_bytes()
    edit(project, "learning_rate: ", "learning_rate: 1")
    main()
    assert CHECKED.read_bytes() == mark


def test_a_slip_is_told_and_leaves_no_mark(project):
    edit(project, "threads:", "thread:")
    with pytest.raises(SystemExit, match="did you mean 'threads'"):
        main()
    assert not CHECKED.exists()
