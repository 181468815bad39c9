"""The parts of the READMEs that are generated: tables of results, and of the stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb import paths
from wxb.charts.wording import listed
from wxb.errors import WxbError
from wxb.params import read_yaml
from wxb.project import profiles, provenance, revisions

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
            return "\n".join(_results())
        case "public":
            return "\n".join(_public())
        case "studies":
            return "\n".join(_of_other_tasks())
        case "seeds":
            return "\n".join(_seeds())
        case "stages":
            return stages_table()
        case _:
            raise WxbError(
                f"README: found a generated block {name!r}; expected results, seeds, public,"
                " studies or stages"
            )


NOISE = (
    "Another kind of CPU gives other last digits; `wxb compare` tells whether they are within"
    " noise."
)


def _results() -> Iterator[str]:
    """The studies in git's index but those of profiles, each with where and when it was made."""
    from wxb.reporting.tables import markdown  # takes numpy

    index = revisions.index()
    profiled = _of_profiles(index)
    for study in provenance.studies(index):
        if study not in profiled:
            made = provenance.demanded(study, index)
            tables = markdown(_read(study, index), made["seconds"])
            yield f"{tables}\n{provenance.told(made)}. {NOISE}\n"


def _seeds() -> Iterator[str]:
    """The demo's study with several seeds, as git's index has it; nothing where it has none."""
    from wxb.charts.pairs import verdicts  # takes numpy
    from wxb.reporting.tables import over_seeds

    study = json.loads(revisions.index().read(paths.SEEDS.as_posix()) or b"{}")
    if study:
        yield over_seeds(study)
        yield "".join(f"- {sentence}\n" for sentence in verdicts(study))
        yield f"{provenance.told(study['made'])}.\n"


def _public() -> Iterator[str]:
    """The studies that profiles add to the tasks of the demo: one table, what each says.

    As all that is generated, as far as git's index has them.
    """
    from wxb.reporting.lead import claim  # take numpy
    from wxb.reporting.tables import side_by_side

    index = revisions.index()
    there = _added(index, of_known_tasks=True)
    if not there:
        return
    studies = {study: _read(study, index) for study in there}
    made = {study: provenance.demanded(study, index) for study in there}
    yield side_by_side(studies, {study: made[study].get("trained_on") for study in there})
    yield "".join(f"- {study}: {claim(studies[study])}\n" for study in there)
    yield from _where(made)


def _of_other_tasks() -> Iterator[str]:
    """The studies that profiles add, of tasks that the demo has none of: a table each."""
    from wxb.reporting.lead import claim  # take numpy
    from wxb.reporting.tables import results

    index = revisions.index()
    there = _added(index, of_known_tasks=False)
    for study in there:
        comparison = _read(study, index)
        yield f"**{comparison['title']}** (`make run STUDY={study}`)\n"
        yield f"{results(comparison)}\n{claim(comparison)}\n"
    yield from _where({study: provenance.demanded(study, index) for study in there})


def _where(made: Mapping[str, provenance.Provenance]) -> Iterator[str]:
    """Where and when studies were made, those of one place together."""
    where = {study: provenance.told(found) for study, found in made.items()}
    for told in dict.fromkeys(where.values()):
        names = listed([study for study in where if where[study] == told])
        yield f"{told} ({names}). {NOISE}\n"


def _added(tree: revisions.Tree, *, of_known_tasks: bool) -> list[str]:
    """The studies of a tree that its profiles add, of the tasks of the demo or of others."""
    there = profiles.of(tree)
    demo = there.get(profiles.BASE, {}).get("studies", {})
    known = {block["task"] for block in demo.values()}
    return [
        study
        for study, task in _of_profiles(tree).items()
        if study in provenance.studies(tree) and (task in known) == of_known_tasks
    ]


def _of_profiles(tree: revisions.Tree) -> dict[str, str]:
    """The studies that the profiles of a tree add, each with its task."""
    own = profiles.additions(profiles.of(tree)).values()
    added = {name: block for blocks in own for name, block in blocks.get("studies", {}).items()}
    return {name: block["task"] for name, block in sorted(added.items())}


def _read(study: str, tree: revisions.Tree) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(tree.read(provenance.study_file(study)) or b"{}")
    return content


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
        written = ", ".join(out for out in outs if paths.COST.as_posix() not in out)
        rows.append(f"| `{verb}` | {section} | {what['desc']} | {written} |")
    return "\n".join(rows) + "\n"


def _path(out: str | dict[str, object]) -> str:
    return out if isinstance(out, str) else next(iter(out))
