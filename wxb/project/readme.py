"""Generate parts of the READMEs and of docs/: tables of results and of stages."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import read_yaml
from wxb.project import benchmarks, dag, profiles, provenance, revisions
from wxb.project.revisions import Tree, read_json
from wxb.reporting.charts.formatting import listed
from wxb.reporting.charts.pairs import claim, without_baselines
from wxb.reporting.tables import (
    caption,
    headline_table,
    score_table,
    side_by_side,
)

READMES = (Path("README.md"), Path("README.zh-TW.md"))
BLOCK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """The READMEs, and the pages of docs/ that have generated parts."""
    docs = sorted(Path("docs").rglob("*.md"))
    return [*READMES, *(path for path in docs if BLOCK.search(path.read_text(encoding="utf-8")))]


def replace(path: Path, text: str) -> None:
    """Replace a file by a text, atomically."""
    with publish(path) as (draft,):
        draft.write_text(text, encoding="utf-8")


def refreshed(text: str) -> str:
    """A page with new text between `<!-- generated: NAME -->` and `<!-- end -->`.

    Its sources are dvc.yaml and the studies in git's index: others may come from another machine.
    Raises WxbError for a block with an unknown name, and for a study without provenance.
    """
    return BLOCK.sub(lambda match: f"{match[1]}{_block(match['name'])}{match[4]}", text)


def _block(name: str) -> str:
    index = revisions.index()
    if benchmark := read_json(index, paths.BENCHMARKS / f"{name}.json"):
        made = provenance.sentence(benchmark["made"])
        return "\n".join([*benchmarks.table(benchmark), f"\n{made}.\n"])
    if name not in WRITERS:
        raise WxbError(f"unknown generated block {name!r}{choices(name, WRITERS)}")
    return "\n".join(WRITERS[name](index))


PRETRAINED = "pretrained"  # the study of weights that know a language comes first
Study = Mapping[str, Any]  # a table as JSON: reports/studies or reports/seeds
RERUN = (
    "A rerun on another type of CPU gives other scores, like another seed; `wxb compare` checks"
    " whether they are within the variation between trainings."
)


def _summary(index: Tree) -> Iterator[str]:
    """The study of pretrained weights, then the demo's with several seeds: claim and table."""
    for study in [read_json(index, paths.study(PRETRAINED)), *_demo_with_seeds(index)]:
        yield f"**{study['title']}** {claim(study)}\n"
        yield headline_table(without_baselines(study)).markdown()
        yield f"{caption(study)}\n"


def _public(index: Tree) -> Iterator[str]:
    """The studies that profiles add to the tasks of the demo: one table, and the claim of each."""
    if studies := _added(index, demo_tasks=True):
        yield side_by_side(
            studies, {name: _origin(s, index).get("trained_on") for name, s in studies.items()}
        )
        captions = {name: caption(study) for name, study in studies.items()}
        yield from _by_text(captions, "{names}: {text}\n")
        yield "".join(f"- {name}: {claim(study)}\n" for name, study in studies.items())
        yield from _origins(studies, index)


def _tables(studies: Mapping[str, Study], index: Tree) -> Iterator[str]:
    """The table and the claim of each study, and where they were run."""
    for name, study in studies.items():
        yield f"**{study['title']}** (`make run STUDY={name}`)\n"
        table = score_table(study, counts=False)
        yield f"{table.markdown()}\n{caption(study)}\n\n{claim(study)}\n"
    yield from _origins(studies, index)


def _pretrained(index: Tree) -> Iterator[str]:
    """The study of pretrained weights."""
    return _tables({PRETRAINED: read_json(index, paths.study(PRETRAINED))}, index)


def _demo_tables(index: Tree) -> Iterator[str]:
    """The demo's studies with several seeds."""
    yield from _tables({study["study"]: study for study in _demo_with_seeds(index)}, index)


def _other_tasks(index: Tree) -> Iterator[str]:
    """The studies that profiles add for tasks that the demo lacks."""
    return _tables(_added(index, demo_tasks=False), index)


def _artifacts_table(_: Tree) -> Iterator[str]:
    """The stages of dvc.yaml as a Markdown table with the files that each writes."""
    yield "| stage | for each of | what it does | writes |"
    yield "|---|---|---|---|"
    for verb, section, block in stages():
        files = [
            f"`{file.replace('${key}', '*').replace('${item.study}', '<study>')}`"
            for file in dag.outputs(block)
            if paths.COST.as_posix() not in file
        ]
        yield f"| `{verb}` | {section} | {block['desc']} | {', '.join(files)} |"
    yield ""


WRITERS: dict[str, Callable[[Tree], Iterator[str]]] = {
    "results": _summary,
    "pretrained": _pretrained,
    "demo": _demo_tables,
    "public": _public,
    "studies": _other_tasks,
    "artifacts": _artifacts_table,
}


def _demo(index: Tree) -> list[str]:
    """The studies that no profile adds."""
    return [name for name in provenance.studies(index) if name not in _studies_of_profiles(index)]


def _demo_with_seeds(index: Tree) -> list[Study]:
    """The demo's studies with several seeds."""
    return [study for name in _demo(index) if (study := read_json(index, paths.seeds(name)))]


def _added(index: Tree, *, demo_tasks: bool) -> dict[str, Study]:
    """The studies that profiles add, either for tasks of the demo or for others; seeds first."""
    demo = profiles.contents(index).get(profiles.BASE, {}).get("studies", {})
    tasks = {block["task"] for block in demo.values()}
    return {
        name: read_json(index, paths.seeds(name)) or read_json(index, paths.study(name))
        for name, task in _studies_of_profiles(index).items()
        if name in provenance.studies(index) and (task in tasks) == demo_tasks
        if name != PRETRAINED
    }


def _studies_of_profiles(index: Tree) -> dict[str, str]:
    """The studies that profiles add, each with its task."""
    own = profiles.additions(profiles.contents(index)).values()
    added = {name: block for blocks in own for name, block in blocks.get("studies", {}).items()}
    return {name: block["task"] for name, block in sorted(added.items())}


def _origin(study: Study, index: Tree) -> provenance.Provenance:
    """Where a study was run; one with several seeds has it in its file."""
    origin: provenance.Provenance = study.get("made") or provenance.require(study["study"], index)
    return origin


def _origins(studies: Mapping[str, Study], index: Tree) -> Iterator[str]:
    """A sentence for each machine and date, with the studies that ran there."""
    sentences = {name: provenance.sentence(_origin(s, index)) for name, s in studies.items()}
    return _by_text(sentences, "{text} ({names}). " + f"{RERUN}\n")


def _by_text(texts: Mapping[str, str], form: str) -> Iterator[str]:
    """Each text once, with the names that have it."""
    for text in dict.fromkeys(texts.values()):
        yield form.format(text=text, names=listed([name for name in texts if texts[name] == text]))


def stages(path: Path = Path("dvc.yaml")) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The stages of dvc.yaml in order: name, section of params.yaml or "once", and block."""
    for verb, stage in read_yaml(path)["stages"].items():
        yield verb, stage.get("foreach", "once").strip("${}"), stage.get("do", stage)
