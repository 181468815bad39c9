"""No path of a call is another one, or inside another one."""

import pytest

from tests.masking.rules import MASK
from tests.repository import write_files

MAPPING = '{"placeholders": {"<NAME_1>": "Zoe"}}'


@pytest.fixture
def folder(cwd):
    """Two inputs, a mapping and operators; links to the mapping, the inputs and one of them."""
    files = {"in/a.txt": "Ann", "in/sub/b.txt": "Bob", "m.json": MAPPING, "list": "Eve"}
    write_files(files | {"o.yaml": "NAME: {operator: number}\n"})
    (cwd / "link.json").symlink_to(cwd / "m.json")
    (cwd / "link.txt").symlink_to(cwd / "in/a.txt")
    (cwd / "folder").symlink_to(cwd / "in")
    return cwd


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("in/a.txt", ["--output", "in/a.txt"]),
        ("in/a.txt", ["--output", "link.json", "--mapping", "m.json"]),
        ("in/a.txt", ["--mapping", "in/a.txt"]),
        ("in/a.txt", ["--output", "o.yaml", "--operators", "o.yaml"]),
        ("in/a.txt", ["--output", "list", "--deny", "@list"]),
        ("-", ["--output", "m.json", "--mapping", "in/../m.json"]),
        ("in", ["--output", "in"]),
        ("in", ["--output", "in/out"]),
        ("in", ["--output", "."]),
        ("in", ["--output", "out", "--mapping", "in/m.json"]),
        ("in", ["--output", "out", "--mapping", "out/m.json"]),
    ],
)
def test_a_collision_is_a_usage_error_with_the_path(folder, run, source, options):
    before = contents(folder)
    code, _, errors = run(*MASK, source, *options)
    assert code == 2
    assert options[-1].removeprefix("@").rpartition("/")[2] in errors
    assert contents(folder) == before


@pytest.mark.parametrize("output", ["m.json", "link.json", "in", "in/out", "folder"])
def test_unmask_replaces_no_file_of_the_call(folder, run, output):
    before = contents(folder)
    assert run("unmask", "in", "--output", output, "--mapping", "m.json")[0] == 2
    assert contents(folder) == before


@pytest.mark.parametrize("arguments", [["lettres", "--output", "out"], ["Ann", "--mapping", "in"]])
def test_a_mistyped_folder_is_no_text_and_a_folder_no_mapping(folder, run, arguments):
    code, _, errors = run(*MASK, *arguments)
    assert code == (2 if "--output" in arguments else 1)
    assert "lettres" in errors or "expected a mapping" in errors
    assert not (folder / "out").exists()


def test_a_secret_is_not_read_through_a_link_in_the_input_folder(folder, run):
    (folder / "in/x.txt").symlink_to(folder / "m.json")
    code, _, errors = run(*MASK, "in", "--output", "out", "--mapping", "m.json")
    assert code == 2
    assert "m.json" in errors
    assert not (folder / "out").exists()
