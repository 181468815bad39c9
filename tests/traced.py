"""What code stages import, as `tests/trace` writes it down, beside what pipeline.yaml names."""

import ast
import json
import os
import re

from ruamel.yaml import YAML

from tests.copied import ROOT
from wxb.core.params import read_yaml
from wxb.project import pipeline

PIPELINE = read_yaml(ROOT / pipeline.PIPELINE)
GROUPS = PIPELINE["groups"]
OURS = ("demos/", "stages/", "wxb/")

# What these hold stops a run, words what it says or names where its files lie: it makes no result.
TELLING = (
    "wxb/__init__.py",
    "wxb/core/errors.py",
    "wxb/core/progress.py",
    "wxb/core/paths.py",
    "wxb/core/params/",
    "wxb/runtime/command.py",
    "wxb/runtime/costs.py",
    "wxb/runtime/locks.py",
    "wxb/runtime/logs.py",
    "wxb/runtime/signals.py",
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
        stage: {dep["path"] for dep in entry["deps"] if dep["path"].startswith(OURS)}
        for stage, entry in lock.items()
    }


def imported(traces):
    """The files of the project's code that each traced stage imported."""
    return {path.stem: {*json.loads(path.read_text())} for path in sorted(traces.glob("*.json"))}


def undeclared(project, traces):
    """By stage what it imports and does not depend on: a change of it would leave results stale.

    Only what can change a result counts. Each is a sentence that says which groups lack it.
    """
    declared, faults = code(project), {}
    for stage, files in imported(traces).items():
        folders = tuple(f"{path}/" for path in declared[stage] if not path.endswith(".py"))
        lacking = {path for path in files - declared[stage] if not path.startswith(folders)}
        verb = stage.partition("@")[0]
        faults[stage] = [lacks(verb, path) for path in sorted(lacking) if matters(path, project)]
    return {stage: sentences for stage, sentences in faults.items() if sentences}


def lacks(verb, path):
    """That a stage imports a file which none of its groups holds, and what to do."""
    groups = ", ".join(group for group in pipeline.code(PIPELINE, verb) if group in GROUPS)
    holders = [group for group, paths in GROUPS.items() if holds(paths, path)]
    remedy = f"add the group {' or '.join(holders)}" if holders else "add it to one of them"
    return (
        f"{verb} imports {path}, which none of its groups ({groups}) and not its own `code` holds:"
        f" {remedy}, or add it to `code` of {verb} in {pipeline.PIPELINE}, then run"
        f" `{pipeline.COMMAND}`"
    )


def has_unused(verb, path):
    """That no stage of a verb imports a file which its groups hold, and what to do."""
    holders = [name for name, paths in pipeline.code(PIPELINE, verb).items() if holds(paths, path)]
    named = " and ".join(
        f"its group {name}" if name in GROUPS else "its `code`" for name in holders
    )
    return (
        f"{verb} does not import {path}, which {named} holds: take it out there in"
        f" {pipeline.PIPELINE}, or leave the group out, then run `{pipeline.COMMAND}`"
    )


def holds(paths, path):
    """Whether a file is among paths, or in a folder that is; `${...}` stands for any name."""
    patterns = [re.sub(r"\\\$\\\{.*?\\\}", "[^/]+", re.escape(each)) for each in paths]
    return any(re.fullmatch(rf"{pattern}(/.+)?", path) for pattern in patterns)


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
