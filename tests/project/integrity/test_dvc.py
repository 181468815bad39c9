"""DVC, as Snakemake starts it, writes its rwlock and dvc.lock atomically, and dvc.lock faster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dvc import dvcfile
from dvc.repo import Repo
from dvc.utils.serialize import _yaml
from dvc_objects.fs.local import FsspecLocalFileSystem

from tests.project.integrity.toy import git
from wxb.project.dag import LOCKFILE
from wxb.project.engines import REPRO
from wxb.project.integrity import dvc
from wxb.runtime.engine import RWLOCK


def open_in_place(fs, path, mode="r", encoding=None, **_):
    return open(path, mode, encoding=encoding)  # noqa: PTH123


@pytest.fixture(params=[True, False])
def is_atomic(request, monkeypatch, project):
    """Whether DVC writes atomically; as it is installed, it does not."""
    monkeypatch.setattr(FsspecLocalFileSystem, "open", open_in_place)
    if request.param:
        dvc.write_atomically()
        dvc.write_atomically()  # once is enough
    return request.param


def interrupted(path, write):
    """A function that writes half of a file and is interrupted; writes other files."""

    def write_half(data, stream, **options):
        if path.name not in stream.name:
            return write(data, stream, **options)
        stream.write('{"half')
        stream.flush()
        raise KeyboardInterrupt

    return write_half


def reproduce_a_change():
    Path("source").write_text("other\n")
    with Repo() as repo:
        repo.reproduce()


@pytest.mark.parametrize(
    ("module", "function", "path"), [(json, "dump", RWLOCK), (_yaml, "_dump", LOCKFILE)]
)
def test_a_signal_while_dvc_writes_changes_nothing(is_atomic, monkeypatch, module, function, path):
    before = path.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(module, function, interrupted(path, getattr(module, function)))
        with pytest.raises(KeyboardInterrupt):
            reproduce_a_change()
    assert (path.read_text() == before) == is_atomic
    assert list(path.parent.glob(".*.partial*")) == []
    if is_atomic:
        reproduce_a_change()
        assert Path("used").read_text() == "other\n"
        git("diff", "--exit-code", "--", "dvc.yaml")


VALUES = {
    "none": None,
    "numbers": [0, -1, 1.5, 2e-05, 1e300, True],
    "texts": ["", "yes", "null", "1e3", "012", "a: b", " x ", "two\nlines", "漢字 é", "word " * 40],
    "empty": [{}, []],
}


def test_dvc_lock_is_written_faster_with_the_same_bytes(project, monkeypatch):
    def written(value):
        with dvcfile.modify_yaml(LOCKFILE) as data:
            data["stages"]["other"] = value
        return LOCKFILE.read_bytes()

    expected = [written(value) for value in (VALUES, None)]
    monkeypatch.setattr(dvcfile, "modify_yaml", dvcfile.modify_yaml)  # restored after the test
    dvc.write_fast()
    dvc.write_fast()  # once is enough
    monkeypatch.setattr(_yaml, "parse_yaml_for_update", None)
    assert [written(value) for value in (VALUES, None)] == expected


def test_comments_of_dvc_yaml_are_kept(project, monkeypatch):
    path = Path("dvc.yaml")
    path.write_text("# comment\n" + path.read_text())
    monkeypatch.setattr(dvcfile, "modify_yaml", dvcfile.modify_yaml)
    dvc.write_fast()
    with dvcfile.modify_yaml(path) as data:
        data["vars"] = []
    assert "# comment" in path.read_text()


def test_snakemake_starts_this_dvc(project):
    assert REPRO[:3] == [sys.executable, "-m", dvc.__name__]
    Path("source").write_text("other\n")
    done = subprocess.run([*REPRO, "make"], check=True, capture_output=True, text=True)
    assert "Running stage 'make'" in done.stdout
    assert Path("made/file").read_text() == "other\n"
