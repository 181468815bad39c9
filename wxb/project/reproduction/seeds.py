"""The study with several seeds for reports/seeds.json.

`make seeds` runs the profile seeds in a clone, and writes the file with this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.core.params import load
from wxb.project import provenance


def study_with_seeds() -> dict[str, Any]:
    """The first study that ran here with all its seeds, and its machines.

    Raises WxbError if there is none.
    """
    params = load()
    for name, block in params.studies.items():
        path = Path(provenance.study_file(name))
        study: dict[str, Any] = read_json(path) if path.is_file() else {"seeds": []}
        run = provenance.from_costs(params, name)
        if run and len(block.seeds) > 1 and study["seeds"] == block.seeds:
            return {**study, "made": run}
    raise WxbError("no study ran here with several seeds; run `wxb params seeds` and `dvc repro`")


if __name__ == "__main__":
    print(json.dumps(study_with_seeds(), ensure_ascii=False, indent=2))
