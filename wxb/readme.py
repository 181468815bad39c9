"""The parts of the READMEs that are generated: tables of results, and of the stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from wxb import provenance, revisions
from wxb.errors import WxbError
from wxb.params import read_yaml
from wxb.reporting.tables import markdown

READMES = (Path("README.md"), Path("README.zh-TW.md"))
BLOCK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def refresh(path: Path) -> None:
    """Write what stands between `<!-- generated: NAME -->` and `<!-- end -->` anew."""
    path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")


def refreshed(text: str) -> str:
    """A README with its generated parts made from dvc.yaml and the studies in git's index.

    What a run on another machine makes of the studies is no news for a README before it is staged.
    Raises WxbError for a block of an unknown name, and for a study of unknown provenance.
    """
    return BLOCK.sub(lambda found: f"{found[1]}{_block(found['name'])}{found[4]}", text)


def _block(name: str) -> str:
    match name:
        case "results":
            return "\n".join(_studies())
        case "stages":
            return stages_table()
        case _:
            raise WxbError(f"README: found a generated block {name!r}; expected results or stages")


def _studies() -> Iterator[str]:
    """The studies in git's index as Markdown, each with where and when it was made."""
    index = revisions.index()
    for study in provenance.studies(index):
        content = index.read(provenance.study_file(study)) or b""
        made = provenance.demanded(study, index)
        tables = markdown(json.loads(content), made["seconds"])
        yield f"{tables}\n{provenance.sentence(made)}\n"


def stages_table() -> str:
    """The stages of dvc.yaml in order, each with what it does and writes."""
    rows = ["| stage | for each of | what it does | writes |", "|---|---|---|---|"]
    for verb, stage in read_yaml(Path("dvc.yaml"))["stages"].items():
        section = stage.get("foreach", "–").strip("${}")
        what = stage.get("do", stage)
        outs = [
            f"`{_path(out).replace('${key}', '*').replace('${item.study}', '<study>')}`"
            for kind in ("outs", "metrics", "plots")
            for out in what.get(kind, [])
        ]
        written = ", ".join(out for out in outs if "reports/cost" not in out)
        rows.append(f"| `{verb}` | {section} | {what['desc']} | {written} |")
    return "\n".join(rows) + "\n"


def _path(out: str | dict[str, object]) -> str:
    return out if isinstance(out, str) else next(iter(out))
