"""Put on PYTHONPATH, this makes every Python process tell which modules of ours it imported."""

import atexit
import json
import os
import sys
from pathlib import Path


def tell(stage: str, main: str | Path, folder: str | Path) -> None:
    """Write the files that a stage imported, its main module's among them."""
    modules = {
        os.path.relpath(file)
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("wxb", "stages", "demos")
        and (file := getattr(module, "__file__", None))
    }
    files = sorted({*modules, os.path.relpath(main)})
    Path(folder, f"{stage}.json").write_text(json.dumps(files))


def _tell() -> None:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name.startswith("stages."):
        stage = "@".join([main.name.removeprefix("stages."), *sys.argv[1:]])
        tell(stage, main.origin, os.environ["WXB_TRACE"])


atexit.register(_tell)
