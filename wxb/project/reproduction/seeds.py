"""What several seeds of training make of a study, in reports/seeds.json.

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


def found() -> dict[str, Any]:
    """The study with several seeds that was made here, and where; WxbError unless all of it was."""
    params = load()
    for name, block in params.studies.items():
        path = Path(provenance.study_file(name))
        study: dict[str, Any] = read_json(path) if path.is_file() else {"seeds": []}
        made = provenance.measured(params, name)
        if made and len(block.seeds) > 1 and study["seeds"] == block.seeds:
            return {**study, "made": made}
    raise WxbError(
        "expected a study that was made here with several seeds; run `wxb params seeds` and"
        " `dvc repro` first"
    )


if __name__ == "__main__":
    print(json.dumps(found(), ensure_ascii=False, indent=2))
