"""On PYTHONPATH, makes every stage write the modules of this project that it imported."""

import atexit
import json
import os
import sys
from pathlib import Path
from typing import NoReturn


def write_imports(stage: str, main: str | Path, folder: str | Path) -> None:
    """Write the files of the modules that a stage imported, including its main module."""
    modules = {
        os.path.relpath(file)
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("wxb", "stages", "demos")
        and (file := getattr(module, "__file__", None))
    }
    files = sorted({*modules, os.path.relpath(main)})
    Path(folder, f"{stage}.json").write_text(json.dumps(files))


def _at_exit() -> None:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name.startswith("stages."):
        stage = "@".join([main.name.removeprefix("stages."), *sys.argv[1:]])
        write_imports(stage, main.origin, os.environ["WXB_TRACE"])


def _write_imports_and_exit(code: int) -> NoReturn:
    _at_exit()
    exit_at_once(code)


exit_at_once, os._exit = os._exit, _write_imports_and_exit  # of a stage that is done
atexit.register(_at_exit)  # of `check`
