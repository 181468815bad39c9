"""What several seeds of training make of the demo's study, in reports/seeds.json.

`make seeds` runs the profile seeds in a clone, and writes the file with this module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wxb.errors import WxbError
from wxb.files import read_json
from wxb.params import load
from wxb.project import provenance

SEEDS = "reports/seeds.json"
STUDY = "ner"


def found() -> dict[str, Any]:
    """The study that was made here, and where that was; WxbError unless all of it was."""
    study: dict[str, Any] = read_json(Path(provenance.study_file(STUDY)))
    made = provenance.measured(load(), STUDY)
    if not made or len(study["seeds"]) < 2:
        raise WxbError(
            f"{STUDY}: expected a study that was made here with several seeds; run"
            f" `wxb params seeds` and `dvc repro report@{STUDY}` first"
        )
    return {**study, "made": made}


if __name__ == "__main__":
    print(json.dumps(found(), ensure_ascii=False, indent=2))
