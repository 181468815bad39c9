"""What code stages import, as `tests/trace` writes it down, beside what dvc.yaml declares."""

import ast
import json
import os
import re

from ruamel.yaml import YAML

from tests.copied import ROOT

# What these hold stops a run, words what it says or names where its files lie: it makes no result.
TELLING = (
    "wxb/__init__.py",
    "wxb/errors.py",
    "wxb/progress.py",
    "wxb/paths.py",
    "wxb/params/",
    "wxb/tasks/__init__.py",
)


def environment(project, traces):
    """With these variables each stage that a project runs writes what it imports to a folder."""
    path = f"{project.folder}{os.pathsep}{ROOT / 'tests' / 'trace'}"
    return {"PYTHONPATH": path, "WXB_TRACE": str(traces)}


def code(project):
    """The files and folders of code that each stage in dvc.lock depends on."""
    lock = YAML(typ="safe").load((project.folder / "dvc.lock").read_text())["stages"]
    return {
        stage: {dep["path"] for dep in entry["deps"] if dep["path"].startswith(("stages/", "wxb/"))}
        for stage, entry in lock.items()
    }


def imported(traces):
    """The files of the project's code that each traced stage imported."""
    return {path.stem: {*json.loads(path.read_text())} for path in sorted(traces.glob("*.json"))}


def undeclared(project, traces):
    """By stage what it imported and does not depend on: a change of it would leave results stale.

    Only what can change a result counts.
    """
    declared, found = code(project), {}
    for stage, files in imported(traces).items():
        folders = tuple(f"{path}/" for path in declared[stage] if not path.endswith(".py"))
        lacking = {path for path in files - declared[stage] if not path.startswith(folders)}
        found[stage] = {path for path in lacking if matters(path, project)}
    return {stage: paths for stage, paths in found.items() if paths}


def matters(path, project):
    """Whether a module that is imported can change a result: not where it only tells.

    Other blocks' schema can stop a run, never change what it makes.
    """
    if path.startswith(TELLING) or re.fullmatch(r"wxb/tasks/\w+/params.py", path):
        return False
    if path.endswith("__init__.py"):
        body = ast.parse((project.folder / path).read_text()).body
        typing = (ast.Import, ast.ImportFrom, ast.If)
        return any(not isinstance(node, (ast.Expr, *typing)) for node in body)
    return True
