"""DVC, as Snakemake starts it, writes its rwlock and dvc.lock atomically, and dvc.lock faster."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from dvc.dvcfile import Lockfile
from dvc.repo import Repo
from dvc.stage import serialize
from dvc.utils.serialize import _yaml
from dvc_objects.fs.local import FsspecLocalFileSystem

from tests.repository import git
from wxb.project import dvc
from wxb.project.dag import LOCKFILE
from wxb.runtime.engine import RWLOCK


def open_in_place(fs, path, mode="r", encoding=None, **_):
    return open(path, mode, encoding=encoding)  # noqa: PTH123


@pytest.fixture(params=[True, False])
def is_atomic(request, monkeypatch, toy_project):
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


@pytest.fixture
def lockfile(toy_project, monkeypatch):
    """The dvc.lock of a project; changes of `split_lockfile` are undone after the test."""
    for name in ("dump_stages", "_load_yaml"):
        monkeypatch.setattr(Lockfile, name, getattr(Lockfile, name))
    # What a stage writes to dvc.lock is its `content`.
    monkeypatch.setattr(serialize, "to_lockfile", lambda stage, **_: {stage.name: stage.content})
    with Repo() as repo:
        yield Lockfile(repo, str(LOCKFILE.resolve()))


def written(lockfile, original, *contents):
    """The bytes of dvc.lock after each change of the contents of stages."""
    LOCKFILE.write_bytes(original) if original else LOCKFILE.unlink(missing_ok=True)
    result = []
    for stages in contents:
        lockfile.dump_stages([SimpleNamespace(name=n, content=c) for n, c in stages.items()])
        result.append(LOCKFILE.read_bytes())
    return result


SHARED = ["a"]  # an anchor and an alias in YAML
CHANGES = [
    {"other": VALUES},
    {"other@one": VALUES, "make": {"cmd": "x"}},
    {"other": {"cmd": "y"}},
    {"other": {"cmd": "y"}},  # no change
    {"other": {"deps": SHARED, "outs": SHARED}, "make": {"deps": SHARED, "outs": SHARED}},
    {"other": VALUES},
    {"on": VALUES, "1.5": VALUES, "null": VALUES},  # YAML quotes some
    {"make": VALUES},
]


@pytest.mark.parametrize("original", ["committed", "none", "unusual"])
def test_dvc_lock_has_the_same_bytes_if_only_blocks_are_written(lockfile, original):
    text = {
        "committed": LOCKFILE.read_bytes(),
        "none": b"",
        "unusual": b"stages: {}\nschema: '2.0'\n",
    }[original]
    expected = written(lockfile, text, *CHANGES)
    dvc.split_lockfile()
    assert written(lockfile, text, *CHANGES) == expected


def test_stages_are_read_as_dvc_reads_them(lockfile):
    expected = lockfile.load()["stages"]
    dvc.split_lockfile()
    stages = lockfile.load()["stages"]
    assert isinstance(stages, dvc.LockedStages)
    assert dict(stages) == expected
    assert len(stages) == len(expected) > 1
    assert "other" not in stages
