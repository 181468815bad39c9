"""Generate dvc.yaml from pipeline.yaml: `python -m wxb.project.pipeline > dvc.yaml`.

pipeline.yaml names groups of dependencies, which DVC does not support: `deps` must be a list of
strings even before interpolation.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import read_yaml

PIPELINE, DVC_YAML = Path("pipeline.yaml"), Path("dvc.yaml")
COMMAND = f"python -m wxb.project.pipeline > {DVC_YAML}"
HEADER = f"# Made from {PIPELINE} by `{COMMAND}`; edit that.\n\nstages:\n"
BASE = "base"  # the group that every stage has
OWN = "code"  # the files that only one stage has


def code_by_group(pipeline: Mapping[str, Any], verb: str) -> dict[str, list[str]]:
    """The files and folders of code that a stage depends on, by group; `code` are its own.

    Raises WxbError if the stage names an unknown group.
    """
    groups, stage = pipeline["groups"], pipeline["stages"][verb]
    names = [BASE, *stage.get("groups", [])]
    for name in names:
        if name not in groups:
            raise WxbError(
                f"{PIPELINE}: stages.{verb}.groups: unknown group {name!r}{choices(name, groups)}"
            )
    own = [f"stages/{verb}.py", *stage.get("code", [])]
    return {**{name: groups[name] for name in names}, OWN: own}


def dvc_yaml(pipeline: Mapping[str, Any]) -> str:
    """The text of dvc.yaml."""
    yaml = YAML()
    yaml.width = 1000  # no line breaks in strings
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda value: True
    blocks = []
    for verb in pipeline["stages"]:
        text = io.StringIO()
        yaml.dump({verb: _stage(pipeline, verb)}, text)
        blocks.append("".join(f"  {line}" for line in text.getvalue().splitlines(keepends=True)))
    return HEADER + "\n".join(blocks)


def _stage(pipeline: Mapping[str, Any], verb: str) -> dict[str, Any]:
    """The block of a stage in dvc.yaml."""
    stage = {k: v for k, v in pipeline["stages"][verb].items() if k not in ("groups", "code")}
    foreach, desc = stage.pop("foreach", None), stage.pop("desc")
    imported = {path for group in code_by_group(pipeline, verb).values() for path in group}
    stage["deps"] = [*stage["deps"], *sorted(imported)]
    command = f"python -m stages.{verb}"
    if foreach is None:
        return {"desc": desc, "cmd": command, **stage}
    stage["outs"] = [*stage.get("outs", []), paths.cost(verb, "${key}").as_posix()]
    return {"foreach": foreach, "do": {"desc": desc, "cmd": f"{command} ${{key}}", **stage}}


if __name__ == "__main__":
    try:
        sys.stdout.write(dvc_yaml(read_yaml(PIPELINE)))
    except WxbError as error:
        sys.exit(str(error))
