"""The house: what may import what, how large files and folders grow, and what names no task."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# From the ground up: a room, which is a module or folder of wxb/, imports from layers below its
# own. What lies in one layer knows nothing of its neighbours.
LAYERS = (
    ("errors", "paths"),
    ("files", "progress", "pretrained"),
    ("params",),
    ("hub",),  # knows the checkpoints that have a name in params
    ("corpora", "text"),
    ("metrics",),
    ("models",),
    ("backbones",),
    ("training",),
    ("charts",),
    ("tasks",),
    ("lessons",),
    ("reporting",),
    ("project",),
    ("masking",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


LINES = 400  # of a file
MODULES_OF_A_FOLDER = 15  # beside its __init__
# They grew before there was a limit.
LONG = {
    "tests/backbones/test_tuning.py",
    "tests/cli/new/test_corpus.py",
    "tests/corpora/test_web.py",
    "tests/hub/test_hub.py",
    "tests/metrics/test_bootstrap.py",
    "tests/project/test_engines.py",
    "tests/project/test_inventory.py",
    "tests/stages/test_preprocess.py",
    "tests/tasks/ner/generation/test_method.py",
    "tests/tasks/ner/metrics/test_metrics.py",
    "tests/test_params.py",
    "tests/text/test_offsets.py",
    "tests/training/test_trainer.py",
}


def sources(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in sources("wxb", "stages")}


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(nodes):
    """The modules of the project that import statements among some nodes name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = [(node.module, f"{node.module}.{alias.name}") for alias in node.names]
            names = [name if name in MODULES else outer for outer, name in inner]
        else:
            continue
        yield from (name for name in names if name in MODULES)


def is_typing(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def everywhere(path):
    """All nodes of a module; of a task's `__init__` without what only mypy reads.

    There mypy holds the task's modules to the protocols of whoever uses them.
    """
    nodes = tree(path).body
    if path.match("wxb/tasks/*/__init__.py"):
        nodes = [node for node in nodes if not is_typing(node)]
    return (inner for node in nodes for inner in ast.walk(node))


def room(name):
    """The room of a module of wxb; none of the package itself, which opens a door to one."""
    return name.split(".")[1] if name.startswith("wxb.") else ""


def test_every_room_has_a_layer():
    assert {room(name) for name in MODULES if room(name)} == {*LEVEL}


@pytest.mark.parametrize("here", LEVEL)
def test_a_room_imports_from_layers_below(here):
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if room(name) == here
        for other in imported(everywhere(path))
        if other.startswith("stages") or (room(other) not in ("", here) and not below(other, here))
    ]
    assert wrong == []


def below(other, here):
    return LEVEL[room(other)] < LEVEL[here]


def test_stages_import_anything_but_commands():
    for path in sources("stages"):
        assert "cli" not in {room(name) for name in imported(everywhere(path))}, path


def test_no_circle():
    """Imports that run with their module: each could run first."""
    uses = {name: {*imported(tree(path).body)} - {name} for name, path in MODULES.items()}
    while free := [name for name, others in uses.items() if not others & uses.keys()]:
        for name in free:
            del uses[name]
    assert uses == {}


def test_no_file_is_long():
    files = [*sources("wxb", "stages", "benchmarks", "tests")]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in files
    }
    assert {path for path, length in lengths.items() if length > LINES} == LONG


def test_no_folder_holds_many_modules():
    folders = {path.parent for path in sources("wxb", "stages", "benchmarks")}
    held = {folder: len([*folder.glob("[!_]*.py")]) for folder in folders}
    assert {folder: n for folder, n in held.items() if n > MODULES_OF_A_FOLDER} == {}


# Where a task may be named: its own folder, and what is an application of one.
OF_TASKS = ("wxb/tasks", "wxb/masking", "wxb/cli")
TEXTS = (".py", ".html", ".css", ".yaml", ".md")
TASKS = [path.parent.name for path in ROOT.glob("wxb/tasks/*/params.py")]
NAMES_A_TASK = re.compile(rf"\b({'|'.join(TASKS)})\b|\btasks\.\w+\.|\btagging\b|\bBIO\b")


def shared():
    """The files that serve any task."""
    files = [path for folder in ("wxb", "stages") for path in (ROOT / folder).rglob("*.*")]
    own = tuple(ROOT / folder for folder in OF_TASKS)
    kept = [path for path in files if path.suffix in TEXTS and not {*path.parents} & {*own}]
    return [ROOT / "dvc.yaml", ROOT / "Snakefile", *sorted(kept)]


def identifiers(path):
    """The names that a module gives or uses."""
    for node in ast.walk(tree(path)):
        for field in ("id", "name", "attr", "arg", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                yield from name.split(".")


@pytest.mark.parametrize("path", shared(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_serves_any_task_names_none(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    # A task is looked up by its name: tasks.metrics(task), wxb/tasks/${item.task}.
    assert [line for line in lines if NAMES_A_TASK.search(line)] == []
    if path.suffix == ".py":
        assert {*identifiers(path)} & {"span", "spans"} == set()


# Words of this project alone, and what people search for in their place.
TERMS = {
    "fate": "alignment status",
    "inked": "non-blank",
    "lots": "chunks",
    "frame": "special_tokens",
    "wire": "structured initialization",
    "wired": "structured initialization",
    "wiring": "structured initialization",
    "written_out": "native",
    "body": "backbone",
    "head_reads": "logits_only_at",
    "strangers": "unlisted",
    "mended": "repaired",
    "glue": "merge_windows",
}
# Of other things: a signal handler's, an HTTP response's, a table's.
ELSEWHERE = {
    "stages/__init__.py": {"frame"},
    "wxb/cli/markdown.py": {"body"},
    "wxb/reporting/tables.py": {"body"},
}


@pytest.mark.parametrize(
    "path", sources("wxb", "stages", "benchmarks"), ids=lambda path: str(path.relative_to(ROOT))
)
def test_identifiers_are_terms_of_the_field(path):
    allowed = ELSEWHERE.get(path.relative_to(ROOT).as_posix(), set())
    found = {*identifiers(path)} & TERMS.keys() - allowed
    assert {name: TERMS[name] for name in found} == {}


@pytest.mark.parametrize("path", sources("wxb", "stages"), ids=lambda path: str(path.name))
def test_where_an_artifact_lies_is_spelled_in_paths_alone(path):
    if path == ROOT / "wxb/paths.py":
        return
    text = path.read_text(encoding="utf-8")
    folder = r"(data|models|reports|logs)"
    spelled = rf"""Path\(\s*f?"{folder}["/]|=\s*f?"{folder}/|return f?"{folder}/"""
    assert re.findall(spelled, text) == []
