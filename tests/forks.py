"""Run commands and stages in forks, which have imported all but the project's own modules."""

import importlib
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from contextlib import ExitStack, chdir
from pathlib import Path
from unittest.mock import patch

from tests.trace import sitecustomize
from wxb.project import status

OWN = ("wxb", "stages", "demos")


def command(program, *arguments, cwd=".", path=(), env=None, stdin=b""):
    """As `subprocess.run` for the program `module:function`; imports search `path` first."""

    def main():
        sys.path[:0] = map(str, path)
        sys.argv = ["wxb", *map(str, arguments)]
        module, _, name = program.partition(":")
        getattr(importlib.import_module(module), name)()

    with ExitStack() as files:
        read, out, err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        read.write(stdin)
        read.seek(0)
        code = _fork(main, cwd, env or os.environ, (read, out, err))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([program, *arguments], code, out.read(), err.read())


def stages(project, *targets, traces=None):
    """Run and commit the stages of targets, or all; each writes its imports to `traces`."""
    import peft  # noqa: F401
    from transformers import Trainer  # noqa: F401

    with chdir(project.folder):
        steps = {step.name: step for step in status.steps()}
    needed = [*(targets or steps)]
    for name in needed:
        needed += steps[name].upstream
    for name in steps:
        if name in needed:
            _stage(project.folder, name, traces)
    project.run("dvc", "commit", "--force", *(["--with-deps", *targets] if targets else []))


def _stage(folder, stage, traces):
    """Run `python -m stages.<verb> <name>` in the folder of a project."""
    verb, _, name = stage.partition("@")

    def main():
        sys.path.insert(0, str(folder))
        sys.argv = [f"stages/{verb}.py", *filter(None, [name])]
        sys.orig_argv = [sys.executable, "-m", f"stages.{verb}", *sys.argv[1:]]
        with patch("os._exit"):  # a stage that is done returns instead
            runpy.run_module(f"stages.{verb}", run_name="__main__")
        if traces is not None:
            sitecustomize.write_imports(stage, folder / f"stages/{verb}.py", traces)

    with Path(os.devnull).open("r+b") as null:
        code = _fork(main, folder, os.environ, (null, null, null))
    log = folder / f"logs/{stage}.log"
    assert code == 0, log.read_text() if log.exists() else stage


def _fork(main, cwd, env, streams):
    """Call a function in a fork, in a folder and an environment; returns the exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for descriptor, stream in enumerate(streams):
                os.dup2(stream.fileno(), descriptor)
            sys.stdin = os.fdopen(0, encoding="utf-8")
            sys.stdout = os.fdopen(1, "w", encoding="utf-8")
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
            # A fork has no threads of tokenizers, and would wait for them.
            variables = {**env, "TOKENIZERS_PARALLELISM": "false"}
            os.environ.clear()
            os.environ.update(variables)
            os.chdir(cwd)
            for module in [name for name in sys.modules if name.split(".")[0] in OWN]:
                del sys.modules[module]
            main()
            code = 0
        except SystemExit as error:
            code = error.code or 0
            if isinstance(code, str):  # a message
                print(code, file=sys.stderr)
                code = 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
