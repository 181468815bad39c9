"""A benchmark as a module: it is a script, and in no package."""

import importlib.util
import sys

from tests.project_copy import ROOT

FOLDER = ROOT / "benchmarks"


def script(name):
    """The module of benchmarks/<name>.py."""
    folder = str((FOLDER / f"{name}.py").parent)
    if folder not in sys.path:
        sys.path.append(folder)  # where a script finds those that it imports
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # typer looks there for the annotations
        spec.loader.exec_module(module)
    return sys.modules[name]
