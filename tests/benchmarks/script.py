"""A benchmark as a module: it is a script, and in no package."""

import importlib.util
import sys

from tests.project_copy import ROOT

FOLDER = ROOT / "benchmarks"


def script(path):
    """The module of benchmarks/<path>.py."""
    file = FOLDER / f"{path}.py"
    folder, name = str(file.parent), file.stem  # the name by which other scripts import it
    if folder not in sys.path:
        sys.path.append(folder)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # typer looks there for the annotations
        spec.loader.exec_module(module)
    return sys.modules[name]
