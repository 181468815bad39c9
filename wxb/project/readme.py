"""The generated parts of the READMEs and of docs/: tables of results and of the stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.params import read_yaml
from wxb.project import profiles, provenance, revisions
from wxb.reporting.charts.formatting import listed

READMES = (Path("README.md"), Path("README.zh-TW.md"))
PAGES = (*READMES, Path("docs/results.md"), Path("docs/pipeline.md"))
BLOCK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def refresh(path: Path) -> None:
    """Write what stands between `<!-- generated: NAME -->` and `<!-- end -->` anew."""
    path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")


def refreshed(text: str) -> str:
    """A page with its generated parts made from dvc.yaml and the studies in git's index.

    Results that are not staged are ignored: another machine may have made them.
    Raises WxbError for a block of an unknown name, and for a study of unknown provenance.
    """
    return BLOCK.sub(lambda found: f"{found[1]}{_block(found['name'])}{found[4]}", text)


def _block(name: str) -> str:
    match name:
        case "results":
            return "\n".join(_summary())
        case "demo":
            return "\n".join(_results())
        case "public":
            return "\n".join(_public())
        case "studies":
            return "\n".join(_of_other_tasks())
        case "seeds":
            return "\n".join(_seeds())
        case "stages":
            return stages_list()
        case "artifacts":
            return artifacts_table()
        case _:
            raise WxbError(
                f"generated block {name!r} is unknown; expected results, demo, seeds, public,"
                " studies, stages or artifacts"
            )


RERUN = (
    "A rerun on another kind of CPU has other scores, as another seed has; `wxb compare` checks"
    " whether they are within what trainings vary."
)


def _summary() -> Iterator[str]:
    """The demo's study with several seeds: its table and one sentence."""
    from wxb.reporting.charts.pairs import claim  # takes numpy
    from wxb.reporting.tables import summary

    study = _several_seeds()
    if study:
        yield f"**{study['title']}** {claim(study)}\n"
        yield summary(study)


def _several_seeds() -> dict[str, Any]:
    """The demo's study with several seeds, as git's index has it; empty if it has none."""
    study: dict[str, Any] = json.loads(revisions.index().read(paths.SEEDS.as_posix()) or b"{}")
    return study


def _results() -> Iterator[str]:
    """The studies in git's index but those of profiles, each with where and when it was made."""
    from wxb.reporting.tables import markdown  # takes numpy

    index = revisions.index()
    profiled = _of_profiles(index)
    for study in provenance.studies(index):
        if study not in profiled:
            made = provenance.demanded(study, index)
            tables = markdown(_read(study, index), made["seconds"])
            yield f"{tables}\n{provenance.told(made)}. {RERUN}\n"


def _seeds() -> Iterator[str]:
    """The demo's study with several seeds: its table, and each paired test in words."""
    from wxb.reporting.charts.pairs import claim, verdicts  # takes numpy
    from wxb.reporting.tables import over_seeds

    study = _several_seeds()
    if study:
        yield over_seeds(study)
        yield f"{claim(study)}\n"
        yield "".join(f"- {sentence}\n" for sentence in verdicts(study))
        yield f"{provenance.told(study['made'])}.\n"


def _public() -> Iterator[str]:
    """The studies that profiles add to the tasks of the demo: one table, what each says.

    As all that is generated, as far as git's index has them.
    """
    from wxb.reporting.charts.pairs import claim  # takes numpy
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
    from wxb.reporting.charts.pairs import claim  # takes numpy
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
        yield f"{told} ({names}). {RERUN}\n"


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


def stages_list() -> str:
    """The stages of dvc.yaml in order: a line each."""
    return "".join(f"- `{verb}` ({section}): {what['desc']}\n" for verb, section, what in stages())


def artifacts_table() -> str:
    """The stages of dvc.yaml in order, each with what it does and the files it writes."""
    rows = ["| stage | for each of | what it does | writes |", "|---|---|---|---|"]
    for verb, section, what in stages():
        outs = [
            f"`{_path(out).replace('${key}', '*').replace('${item.study}', '<study>')}`"
            for kind in ("outs", "metrics", "plots")
            for out in what.get(kind, [])
        ]
        written = ", ".join(out for out in outs if paths.COST.as_posix() not in out)
        rows.append(f"| `{verb}` | {section} | {what['desc']} | {written} |")
    return "\n".join(rows) + "\n"


def stages(path: Path = Path("dvc.yaml")) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each stage of dvc.yaml: its name, the section of params.yaml it runs for, its block."""
    for verb, stage in read_yaml(path)["stages"].items():
        yield verb, stage.get("foreach", "once").strip("${}"), stage.get("do", stage)


def _path(out: str | dict[str, object]) -> str:
    return out if isinstance(out, str) else next(iter(out))
