"""The house: what may import what, how large files and folders grow, and what names no task."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# From the ground up: a room, which is a module or folder of wxb/, imports from layers below its
# own. What lies in one layer knows nothing of its neighbours.
LAYERS = (
    ("core", "models"),
    ("corpora",),
    ("metrics",),
    ("training", "reporting"),
    ("tasks", "runtime", "lessons"),
    ("project", "masking"),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


LINES = 400  # of a file
MODULES_OF_A_FOLDER = 15  # beside its __init__
# They grew before there was a limit.
LONG = {
    "tests/training/backbones/test_tuning.py",
    "tests/cli/new/test_corpus.py",
    "tests/corpora/test_web.py",
    "tests/core/hub/test_hub.py",
    "tests/metrics/test_bootstrap.py",
    "tests/project/test_inventory.py",
    "tests/stages/test_preprocess.py",
    "tests/tasks/ner/generation/test_method.py",
    "tests/tasks/ner/metrics/test_metrics.py",
    "tests/core/test_params.py",
    "tests/training/test_trainer.py",
}


def sources(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in sources("wxb", "stages", "demos")}


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


def everywhere(path):
    """All nodes of a module."""
    return (inner for node in tree(path).body for inner in ast.walk(node))


def room(name):
    """The room of a module of wxb; none of the package itself, which opens a door to one."""
    return name.split(".")[1] if name.startswith("wxb.") else ""


def test_every_room_has_a_layer():
    assert {room(name) for name in MODULES if room(name)} == {*LEVEL}


def test_a_room_imports_from_layers_below():
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if (here := room(name))
        for other in imported(everywhere(path))
        if other.startswith(("stages", "demos"))
        or (room(other) not in ("", here) and LEVEL[room(other)] >= LEVEL[here])
    ]
    assert not wrong, "\n".join(wrong)


def test_masking_is_an_application():
    """It imports what anybody could: the public names, errors, and how files are written."""
    names = {
        other
        for name, path in MODULES.items()
        if room(name) == "masking"
        for other in imported(everywhere(path))
    }
    assert {name for name in names if room(name) != "masking"} == {
        "wxb",
        "wxb.core.errors",
        "wxb.core.files",
    }


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
    files = [*sources("wxb", "demos", "stages", "benchmarks", "tests")]
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in files
    }
    assert {path for path, length in lengths.items() if length > LINES} == LONG


def test_no_folder_holds_many_modules():
    folders = {path.parent for path in sources("wxb", "demos", "stages", "benchmarks")}
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


def test_what_serves_any_task_names_none():
    """A task is looked up by its name: tasks.get(task).metrics, wxb/tasks/${item.task}."""
    files = shared()
    lines = [
        f"{path}:{number}: {line}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if NAMES_A_TASK.search(line)
    ]
    assert not lines, "\n".join(lines)
    spans = {"span", "spans"}
    assert [p for p in files if p.suffix == ".py" and {*identifiers(p)} & spans] == []


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
    "wxb/runtime/signals.py": {"frame"},
    "wxb/cli/markdown.py": {"body"},
    "wxb/reporting/tables.py": {"body"},
}


def test_identifiers_are_terms_of_the_field():
    violations = [
        f"{path}: {name} (use: {TERMS[name]})"
        for path in sources("wxb", "demos", "stages", "benchmarks")
        for name in {*identifiers(path)} & TERMS.keys()
        if name not in ELSEWHERE.get(path.relative_to(ROOT).as_posix(), ())
    ]
    assert not violations, "\n".join(violations)


def test_where_an_artifact_lies_is_spelled_in_paths_alone():
    folder = r"(data|models|reports|logs)"
    spelled = rf"""Path\(\s*f?"{folder}["/]|=\s*f?"{folder}/|return f?"{folder}/"""
    violations = [
        f"{path}: {match[0]}"
        for path in sources("wxb", "stages")
        if path != ROOT / "wxb/core/paths.py"
        for match in re.finditer(spelled, path.read_text(encoding="utf-8"))
    ]
    assert not violations, "\n".join(violations)
