"""The architecture: allowed imports, and shared code without task names."""

import ast
import re
from functools import cache

from tests.lines import BUDGET, count
from tests.project_copy import ROOT

# From bottom to top. A package, a module or folder in wxb/, may import from lower layers only, not
# from other packages of its layer.
LAYERS = (
    ("core", "models"),
    ("corpora",),
    ("metrics",),
    ("training", "reporting", "masking"),
    ("tasks", "runtime", "lessons"),
    ("project",),
    ("cli",),
)
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


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
    """The modules of the project that the import statements among these nodes name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = [(node.module, f"{node.module}.{alias.name}") for alias in node.names]
            names = [name if name in MODULES else outer for outer, name in inner]
        else:
            continue
        yield from (name for name in names if name in MODULES)


def all_nodes(path):
    """All nodes of a module's syntax tree."""
    return (inner for node in tree(path).body for inner in ast.walk(node))


def package(name):
    """The package of a module in wxb/; empty for wxb itself and for other code."""
    return name.split(".")[1] if name.startswith("wxb.") else ""


def test_every_package_has_a_layer():
    assert {package(name) for name in MODULES if package(name)} == {*LEVEL}


def test_packages_import_from_lower_layers():
    wrong = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        if (own := package(name))
        for other in imported(all_nodes(path))
        if other.startswith(("stages", "demos"))
        or (package(other) not in ("", own) and LEVEL[package(other)] >= LEVEL[own])
    ]
    assert not wrong, "\n".join(wrong)


def test_masking_is_an_application():
    """It imports only the public names, errors and file functions."""
    names = {
        other
        for name, path in MODULES.items()
        if package(name) == "masking"
        for other in imported(all_nodes(path))
    }
    assert {name for name in names if package(name) != "masking"} == {
        "wxb",
        "wxb.core.errors",
        "wxb.core.files",
    }


def test_stages_do_not_import_commands():
    for path in sources("stages"):
        assert "cli" not in {package(name) for name in imported(all_nodes(path))}, path


def test_no_circular_imports():
    """Counts imports at the top level of modules."""
    imports = {name: {*imported(tree(path).body)} - {name} for name, path in MODULES.items()}
    while free := [name for name, others in imports.items() if not others & imports.keys()]:
        for name in free:
            del imports[name]
    assert imports == {}


def test_no_folder_is_over_its_budget_of_lines():
    assert {f"wxb/{path.name}" for path in (ROOT / "wxb").iterdir() if any(path.glob("*.py"))} <= {
        *BUDGET
    }
    assert {folder: n for folder in BUDGET if (n := count(folder)) > BUDGET[folder]} == {}


# Folders that may name tasks.
TASK_FOLDERS = ("wxb/tasks", "wxb/masking", "wxb/cli")
SUFFIXES = (".py", ".html", ".css", ".yaml", ".md")
TASKS = [path.parent.name for path in ROOT.glob("wxb/tasks/*/params.py")]
# A module of a task, or a comparison of a task with a literal; not prose: a task may have any name.
TASK_NAME = re.compile(rf"""tasks[./]({"|".join(TASKS)})\b|\btask (==|!=|in) ["'({{\[]""")


def identifiers(path):
    """The names in a module."""
    for node in ast.walk(tree(path)):
        for field in ("id", "name", "attr", "arg", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                yield from name.split(".")


def test_shared_files_name_no_task():
    """Tasks are looked up by name: tasks.get(task).metrics, wxb/tasks/${item.task}."""
    paths = [path for folder in ("wxb", "stages") for path in (ROOT / folder).rglob("*.*")]
    own = {ROOT / folder for folder in TASK_FOLDERS}
    shared = [path for path in paths if path.suffix in SUFFIXES and not {*path.parents} & own]
    files = [ROOT / "dvc.yaml", ROOT / "Snakefile", *sorted(shared)]
    lines = [
        f"{path}:{number}: {line}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if TASK_NAME.search(line)
    ]
    assert not lines, "\n".join(lines)
    spans = {"span", "spans"}
    assert [p for p in files if p.suffix == ".py" and {*identifiers(p)} & spans] == []


def test_only_paths_py_spells_paths_of_outputs():
    folder = r"(data|models|reports|logs)"
    spelling = rf"""Path\(\s*f?"{folder}["/]|=\s*f?"{folder}/|return f?"{folder}/"""
    violations = [
        f"{path}: {match[0]}"
        for path in sources("wxb", "stages")
        if path != ROOT / "wxb/core/paths.py"
        for match in re.finditer(spelling, path.read_text(encoding="utf-8"))
    ]
    assert not violations, "\n".join(violations)
