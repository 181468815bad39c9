"""Studies with several seeds, for reports/seeds/<study>.json.

`make seeds` calls this module in a clone: `set STUDY` before the run, `print STUDY` after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from wxb.core.errors import WxbError, choices
from wxb.core.files import read_json
from wxb.core.params import PARAMS, load
from wxb.project import params_file, provenance

SEEDS = [1, 2, 3]


def set_seeds(study: str, path: Path = PARAMS) -> None:
    """Set the seeds of one study in params.yaml to SEEDS.

    Only its own experiments are trained with all of them: backbones, also those that another study
    trains, keep their weights. Raises WxbError if params.yaml lacks the study.
    """
    text = params_file.read(path)
    content = params_file.parse(text)
    studies = content.get("studies", {})
    if study not in studies:
        raise WxbError(f"{path}: no study {study!r}{choices(study, studies)}")
    studies[study]["seed"] = SEEDS
    params_file.write(params_file.update(text, content), path)


def study_with_seeds(study: str) -> dict[str, Any]:
    """The comparison of a study that ran here with all its seeds, and its machines as `made`.

    Raises WxbError if it did not run with several seeds.
    """
    params, path = load(), Path(provenance.study_file(study))
    content: dict[str, Any] = read_json(path) if path.is_file() else {"seeds": []}
    made = provenance.from_costs(params, study)
    if not made or len(content["seeds"]) < 2 or content["seeds"] != params.studies[study].seeds:
        raise WxbError(
            f"{study} did not run here with several seeds; run `make seeds STUDY={study}`"
        )
    return {**content, "made": made}


if __name__ == "__main__":
    _, action, name = sys.argv
    if action == "set":
        set_seeds(name)
    else:
        print(json.dumps(study_with_seeds(name), ensure_ascii=False, indent=2))
