"""Every changed byte of outputs, sources and cache is found, and repaired if there is a copy."""

import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo
from typer.testing import CliRunner

from tests.project.toy import flip, stages_run
from tests.repository import git
from wxb.cli.app import app
from wxb.project.verify import verify


def faults(repair=False):
    return {str(fault.path): fault.kind for fault in verify(repair)[1]}


def contents():
    files = [path for path in Path().rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in files if "tmp" not in path.parts}


def cached_copy(content):
    """The path of the only file in DVC's cache with this content."""
    files = [path for path in Path(".dvc/cache/files").rglob("*") if path.is_file()]
    (copy,) = (path for path in files if path.read_bytes() == content)
    return copy


def test_every_flipped_byte_is_found_and_repaired(toy_project):
    """Also in the cache, whose objects DVC believes if their mode is 0444."""
    assert faults() == {}
    before = contents()
    cached = [name for name in before if name.startswith(".dvc/cache/files/")]
    assert len(cached) == 4  # a folder with two files, `used` has one of them, and the metrics
    for name in ["made/file", "made/other", "used", "score.json", *cached]:
        for index in range(0, len(before[name]), 5 if len(before[name]) > 40 else 1):
            flip(Path(name), index)
            assert faults() == {name: "altered"}
            flip(Path(name), index)
        flip(Path(name))
        assert verify(repair=True)[1][0].is_restored
        assert contents()[name] == before[name]
    assert contents() == before
    assert faults() == {}
    assert stages_run() == []


def test_without_a_copy_the_stage_is_stale(toy_project):
    """Not so before: DVC restored the wrong bytes from its cache."""
    cached = cached_copy(b"1\n")
    for path in (cached, Path("made/other")):
        flip(path)
    _, found = verify(repair=True)
    assert {str(fault.path): fault.is_restored for fault in found} == {
        str(cached): False,
        "made/other": False,
    }
    assert stages_run() == ["make"]
    assert Path("made/other").read_text() == "1\n"
    assert faults() == {}


def test_missing_and_unexpected_files_are_named(toy_project):
    before = contents()
    Path("made/other").rename("made/renamed")
    cached = cached_copy(b"a source\n")
    cached.unlink()
    expected = {"made/other": "missing", "made/renamed": "unexpected", str(cached): "missing"}
    assert faults() == expected
    assert faults(repair=True) == expected
    assert contents() == before | {"made/renamed": b"1\n"}  # it may be the user's


def test_a_source_is_named_and_never_written(toy_project):
    assert faults() == {}
    flip(Path("source"))
    content, status = Path("source").read_bytes(), Path("source").stat()
    for repair in (False, True):
        assert faults(repair) == {"source": "altered"}
    assert (Path("source").read_bytes(), Path("source").stat()) == (content, status)


@pytest.mark.parametrize("damage", [flip, Path.unlink])
@pytest.mark.parametrize("link", ["made/other", "used"])
def test_a_link_into_the_cache_is_repaired_or_removed(toy_project, tmp_path_factory, link, damage):
    cache = str(tmp_path_factory.mktemp("disk") / "cache")
    with Repo() as repo, repo.config.edit() as config:
        config["cache"] |= {"type": ["symlink"], "dir": shutil.move(".dvc/cache", cache)}
    with Repo() as repo:
        repo.checkout(relink=True)
    content, target = Path(link).read_text(), Path(link).resolve()
    damage(target)
    verify(repair=True)
    assert not Path(link).is_symlink()
    assert not target.exists()
    assert stages_run() == ["make"]
    assert Path(link).read_text() == content


def test_a_lost_listing_of_a_folder_is_rebuilt(toy_project):
    before = contents()
    (listing,) = Path(".dvc/cache/files").rglob("*.dir")
    for damage in (flip, Path.unlink):
        damage(listing)
        assert {*faults()} == {str(listing)}
        verify(repair=True)
        assert contents() == before
    flip(listing)
    flip(Path("made/other"))  # now nobody knows the files of the folder
    assert {"made", str(listing)} <= {*faults()}
    Path("made/lost").symlink_to("nowhere")
    verify(repair=True)
    assert stages_run() == ["make"]
    assert faults() == {}


def test_stale_sources_and_data_that_nothing_here_has_are_no_faults(toy_project):
    Path("source").write_text("edited\n")
    assert faults() == {}
    git("checkout", "-q", "source")
    shutil.rmtree("made")
    shutil.rmtree(".dvc/cache")
    Path("used").unlink()
    assert faults() == {}  # as in a clone
    git("add", "--force", "score.json")
    Path("score.json").unlink()
    assert faults() == faults(repair=True) == {"score.json": "missing"}
    assert faults() == {}  # restored from git's index


def test_the_command_exits_with_1_and_names_the_file(toy_project):
    flip(Path("used"))
    failed = CliRunner().invoke(app, ["verify"])
    assert failed.exit_code == 1
    assert failed.stdout.startswith("altered: used\n")
    repaired = CliRunner().invoke(app, ["verify", "--repair"])
    assert repaired.exit_code == 0
    assert repaired.stdout.startswith("altered: used (restored from a copy)\n")
    assert CliRunner().invoke(app, ["verify"]).exit_code == 0
