"""No path of a call is another one, or inside another one."""

import pytest

from tests.masking.running import MASK, write_files

MAPPING = b'{"placeholders": {"<NAME_1>": "Zoe"}, "reserved": []}'


@pytest.fixture
def folder(tmp_path):
    """Two inputs, a mapping and operators; links to the mapping, the inputs and one of them."""
    files = {"in/a.txt": b"Ann", "in/sub/b.txt": b"Bob", "m.json": MAPPING}
    write_files(tmp_path, {**files, "o.yaml": b"NAME: {operator: number}\n"})
    (tmp_path / "link.json").symlink_to(tmp_path / "m.json")
    (tmp_path / "hard.json").hardlink_to(tmp_path / "m.json")
    (tmp_path / "link.txt").symlink_to(tmp_path / "in/a.txt")
    (tmp_path / "folder").symlink_to(tmp_path / "in")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("source", "options", "named"),
    [
        ("in/a.txt", {"--output": "in/a.txt"}, ["in/a.txt"]),
        ("in/a.txt", {"--output": "link.txt"}, ["in/a.txt", "link.txt"]),
        ("in/a.txt", {"--output": "m.json", "--mapping": "m.json"}, ["m.json"]),
        ("in/a.txt", {"--output": "link.json", "--mapping": "m.json"}, ["m.json", "link.json"]),
        ("in/a.txt", {"--output": "hard.json", "--mapping": "m.json"}, ["m.json", "hard.json"]),
        ("in/a.txt", {"--mapping": "in/a.txt"}, ["in/a.txt"]),
        ("in/a.txt", {"--output": "o.yaml", "--operators": "o.yaml"}, ["o.yaml"]),
        ("Ann", {"--output": "m.json", "--mapping": "m.json"}, ["m.json"]),
        ("-", {"--output": "m.json", "--mapping": "in/../m.json"}, ["m.json"]),
        ("in", {"--output": "in"}, ["in"]),
        ("in", {"--output": "in/out"}, ["in/out"]),
        ("in", {"--output": "."}, ["in", "."]),
        ("in", {"--output": "folder"}, ["in", "folder"]),
        ("in", {"--output": "folder/out"}, ["in", "folder/out"]),
        ("folder", {"--output": "in/out"}, ["in/out", "folder"]),
        ("in", {"--output": "out", "--mapping": "in/m.json"}, ["in", "in/m.json"]),
        ("in", {"--output": "out", "--mapping": "folder/sub/m"}, ["in", "folder/sub/m"]),
        ("in", {"--output": "out", "--mapping": "out/m.json"}, ["out", "out/m.json"]),
    ],
)
def test_a_collision_is_a_usage_error_with_both_paths(folder, run, source, options, named):
    before = contents(folder)
    code, _, errors = run(*MASK, source, *(part for option in options.items() for part in option))
    assert code == 2
    assert all(path in errors for path in named)
    assert contents(folder) == before


@pytest.mark.parametrize("output", ["m.json", "link.json", "in", "in/out", "folder"])
def test_unmask_replaces_no_file_of_the_call(folder, run, output):
    before = contents(folder)
    assert run("unmask", "in", "--output", output, "--mapping", "m.json")[0] == 2
    assert contents(folder) == before


@pytest.mark.parametrize("report", ["m.json", "in/a.txt", "in/r.json", "hard.json", "o.yaml"])
def test_a_report_replaces_no_file_of_the_call(folder, run, report):
    before = contents(folder)
    options = ("--mapping", "m.json", "--operators", "o.yaml", "--report", report)
    assert run(*MASK, "in", "--output", "out", *options)[0] == 2
    assert contents(folder) == before


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_secret_is_not_read_through_a_link_in_the_input_folder(folder, run, link):
    getattr(folder / "in/x.txt", link)(folder / "m.json")
    code, _, errors = run(*MASK, "in", "--output", "out", "--mapping", "m.json")
    assert code == 2
    assert "in/x.txt" in errors
    assert not (folder / "out").exists()
