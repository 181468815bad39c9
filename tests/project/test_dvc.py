"""DVC, as Snakemake starts it, writes its rwlock and dvc.lock atomically."""

import json
from pathlib import Path

import pytest
from dvc.repo import Repo
from dvc.utils.serialize import _yaml
from dvc_objects.fs.local import FsspecLocalFileSystem

from tests.project.toy_dag import HOME
from tests.repository import git
from wxb.project import dvc
from wxb.project.status import LOCKFILE
from wxb.runtime.engine import RWLOCK


def open_in_place(fs, path, mode="r", encoding=None, **_):
    return open(path, mode, encoding=encoding)  # noqa: PTH123


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
def test_a_signal_while_dvc_writes_changes_nothing(
    toy_project, monkeypatch, module, function, path
):
    monkeypatch.setattr(FsspecLocalFileSystem, "open", open_in_place)  # as DVC is installed
    for _ in range(2):  # once is enough
        dvc.patch_writes()
    before = path.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(module, function, interrupted(path, getattr(module, function)))
        with pytest.raises(KeyboardInterrupt):
            reproduce_a_change()
    assert path.read_text() == before
    assert list(path.parent.glob(".*.partial*")) == []
    reproduce_a_change()
    assert Path("used").read_text() == "other\n"
    git("diff", "--exit-code", "--", "dvc.yaml")


def test_both_parsers_keep_the_bytes_of_dvc_lock():
    text = (HOME / LOCKFILE).read_text()
    for parse in (_yaml.parse_yaml, _yaml.parse_yaml_for_update):
        assert _yaml.dumps_yaml(parse(text, LOCKFILE)) == text
