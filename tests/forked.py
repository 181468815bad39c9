"""Stages run without an engine, each in a fork of this process, which has imported what is large.

What they import of the project they import anew, so that it can be told as of a process of its own.
"""

import os
import runpy
import sys
import traceback
from contextlib import chdir

from tests.trace import sitecustomize
from wxb.project import dag


def run(project, *targets, traces=None):
    """Run the stages of a new project that lead to targets, and have DVC record what they made.

    Each writes what it imported to the folder `traces`.
    """
    import peft  # noqa: F401
    from transformers import Trainer  # noqa: F401

    with chdir(project.folder):
        steps = {step.name: step for step in dag.steps()}
    wanted = [*targets]
    for name in wanted:
        wanted += steps[name].upstream
    for name in steps:
        if name in wanted:
            _run(project.folder, name, traces)
    project.run("dvc", "commit", "--force", "--with-deps", *targets)


def _run(folder, stage, traces):
    child = os.fork()
    if child == 0:
        os._exit(_stage(folder, stage, traces))
    _, status = os.waitpid(child, 0)
    log = folder / f"logs/{stage}.log"
    assert status == 0, log.read_text() if log.exists() else stage


def _stage(folder, stage, traces):
    """What `python -m stages.<verb> <name>` does in the folder of a project; its exit code."""
    verb, _, name = stage.partition("@")
    try:
        os.chdir(folder)
        for module in [m for m in sys.modules if m.split(".")[0] in ("wxb", "stages")]:
            del sys.modules[module]
        sys.path.insert(0, str(folder))
        sys.argv = [f"stages/{verb}.py", *filter(None, [name])]
        sys.orig_argv = [sys.executable, "-m", f"stages.{verb}", *sys.argv[1:]]
        runpy.run_module(f"stages.{verb}", run_name="__main__")
        if traces is not None:
            sitecustomize.tell(stage, folder / f"stages/{verb}.py", traces)
    except SystemExit as error:
        return int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
