"""Compare the code that stages import, traced by `tests/trace`, with what dvc.yaml declares."""

import ast
import json
import os
import re

from ruamel.yaml import YAML

from tests.project_copy import ROOT

OURS = ("demos/", "stages/", "wxb/")
SCHEMA = re.compile(r"wxb/tasks/\w+/params\.py")
WITHOUT_EFFECT = {"wxb/__init__.py", "wxb/tasks/__init__.py"}  # they only find other modules


def environment(project, traces):
    """Environment variables that make each stage of a project write its imports to a folder."""
    path = f"{project.folder}{os.pathsep}{ROOT / 'tests' / 'trace'}"
    return {"PYTHONPATH": path, "WXB_TRACE": str(traces)}


def declared(project):
    """The files and folders of code that each stage in dvc.lock depends on."""
    lock = YAML(typ="safe").load((project.folder / "dvc.lock").read_text())["stages"]
    return {
        stage: {dep["path"] for dep in entry["deps"] if dep["path"].startswith(OURS)}
        for stage, entry in lock.items()
    }


def imported(traces):
    """The files of the project that each traced stage imported."""
    return {path.stem: {*json.loads(path.read_text())} for path in sorted(traces.glob("*.json"))}


def undeclared(project, traces):
    """The files by stage that it imports and does not depend on: an edit would be missed.

    A module with imports alone changes no result; neither do the tasks' settings in `check`, whose
    output never changes, in `tokenizer`, which only compares them with its checkpoint, and for a
    corpus.
    """
    dependencies, missing = declared(project), {}
    for stage, files in imported(traces).items():
        if stage == "check":
            continue
        folders = tuple(f"{path}/" for path in dependencies[stage] if not path.endswith(".py"))
        missing[stage] = [
            path
            for path in sorted(files - dependencies[stage] - WITHOUT_EFFECT)
            if not path.startswith(folders)
            and not SCHEMA.fullmatch(path)
            and not (stage.startswith("tokenizer@") and path.startswith("wxb/tasks/"))
            and has_code(project.folder / path)
        ]
    return {stage: paths for stage, paths in missing.items() if paths}


def unused(project, traces):
    """The files and folders by verb that its stages depend on, and of which none imports a file."""
    used, dependencies = {}, {}
    for stage, files in imported(traces).items():
        used.setdefault(stage.partition("@")[0], set()).update(files)
    for stage, paths in declared(project).items():
        dependencies.setdefault(stage.partition("@")[0], set()).update(paths)
    return {
        verb: left
        for verb, paths in dependencies.items()
        if (left := sorted(path for path in paths if not _imports(used.get(verb, ()), path)))
    }


def _imports(files, path):
    return any(file == path or file.startswith(f"{path}/") for file in files)


def has_code(path):
    """Whether a module has more than imports and a docstring."""
    body = ast.parse(path.read_text()).body
    return any(
        not isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.If)) for node in body
    )
