"""Compare the code that stages import, traced by `tests/trace`, with pipeline.yaml."""

import ast
import json
import os
import re

from ruamel.yaml import YAML

from tests.project_copy import ROOT
from wxb.core.params import read_yaml
from wxb.project import pipeline

PIPELINE = read_yaml(ROOT / pipeline.PIPELINE)
GROUPS = PIPELINE["groups"]
OURS = ("demos/", "stages/", "wxb/")

# Code that cannot change results: errors, progress, paths and the schema of params.yaml.
WITHOUT_EFFECT = (
    "wxb/__init__.py",
    "wxb/core/errors.py",
    "wxb/core/progress.py",
    "wxb/core/paths.py",
    "wxb/core/params/",
    "wxb/runtime/command.py",
    "wxb/runtime/costs.py",
    "wxb/runtime/engine.py",
    "wxb/runtime/inputs.py",
    "wxb/runtime/locks.py",
    "wxb/runtime/logs.py",
    "wxb/runtime/signals.py",
    "wxb/tasks/__init__.py",
)


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
    """Error messages by stage, for files that it imports and does not depend on.

    Editing such a file would leave wrong results. Files that cannot change results do not count.
    """
    dependencies, messages = declared(project), {}
    for stage, files in imported(traces).items():
        folders = tuple(f"{path}/" for path in dependencies[stage] if not path.endswith(".py"))
        missing = {path for path in files - dependencies[stage] if not path.startswith(folders)}
        verb = stage.partition("@")[0]
        messages[stage] = [
            missing_message(verb, path)
            for path in sorted(missing)
            if can_change_results(path, project)
        ]
    return {stage: lines for stage, lines in messages.items() if lines}


def missing_message(verb, path):
    """The error for a file that a stage imports and none of its groups has."""
    groups = ", ".join(group for group in pipeline.code_by_group(PIPELINE, verb) if group in GROUPS)
    others = [group for group, paths in GROUPS.items() if contains(paths, path)]
    remedy = f"add the group {' or '.join(others)}" if others else "add it to one of them"
    return (
        f"{verb} imports {path}, which neither its groups ({groups}) nor its own `code` contain:"
        f" {remedy}, or add it to `code` of {verb} in {pipeline.PIPELINE}, then run"
        f" `{pipeline.COMMAND}`"
    )


def unused_message(verb, path):
    """The error for a file that the groups of a stage have and no stage of a verb imports."""
    names = [
        name
        for name, paths in pipeline.code_by_group(PIPELINE, verb).items()
        if contains(paths, path)
    ]
    groups = " and ".join(f"its group {name}" if name in GROUPS else "its `code`" for name in names)
    return (
        f"{verb} does not import {path}, which {groups} contains: remove it there in"
        f" {pipeline.PIPELINE}, or remove the group, then run `{pipeline.COMMAND}`"
    )


def contains(paths, path):
    """Whether a file is among paths, or in one of them; `${...}` matches any name."""
    patterns = [re.sub(r"\\\$\\\{.*?\\\}", "[^/]+", re.escape(each)) for each in paths]
    return any(re.fullmatch(rf"{pattern}(/.+)?", path) for pattern in patterns)


def can_change_results(path, project):
    """Whether an imported module can change results; one with imports alone cannot."""
    if path.startswith(WITHOUT_EFFECT) or re.fullmatch(r"wxb/tasks/\w+/params.py", path):
        return False
    if path.endswith("__init__.py"):
        body = ast.parse((project.folder / path).read_text()).body
        typing = (ast.Import, ast.ImportFrom, ast.If)
        return any(not isinstance(node, (ast.Expr, *typing)) for node in body)
    return True
