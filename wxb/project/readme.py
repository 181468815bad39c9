"""Generate parts of the READMEs and of docs/: tables of results and of stages."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.files import publish
from wxb.core.params import read_yaml
from wxb.project import benchmarks, dag, profiles, provenance, revisions, settings
from wxb.project.revisions import Tree, read_json
from wxb.reporting.charts.formatting import listed, with_interval
from wxb.reporting.charts.pairs import claim, without_baselines
from wxb.reporting.tables import caption, headline_table, score_table, training_table

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
CURVE = {"curve-30": 30, "curve-100": 100, "curve-300": 300, PRETRAINED: 1300, "curve-3000": 3000}
Study = Mapping[str, Any]  # a table as JSON: reports/studies or reports/seeds


def _summary(index: Tree) -> Iterator[str]:
    """The study of pretrained weights, then the demo's: claim and table."""
    for study in [_study(PRETRAINED, index), *_demo(index)]:
        yield f"**{study['title']}** {claim(study)}\n"
        yield headline_table(without_baselines(study)).markdown()
        yield f"{caption(study)}\n"


def _tables(studies: Sequence[Study], index: Tree, *, costs: bool = False) -> Iterator[str]:
    """Table, claim and costs of each study, and a sentence for each machine and date."""
    origins: dict[str, list[str]] = {}
    for study in studies:
        name, table = study["study"], score_table(study, counts=False)
        yield f"**{study['title']}** (`make run STUDY={name}`)\n"
        yield f"{table.markdown()}\n{caption(study)}\n\n{claim(study)}\n"
        if costs:  # of a training with one seed
            seconds = provenance.require(name, index)["seconds"]
            yield training_table(study, seconds).markdown()
        made = study.get("made") or provenance.require(name, index)
        origins.setdefault(provenance.sentence(made), []).append(name)
    for sentence, names in origins.items():
        yield f"{sentence} ({listed(names)}).\n"


def _curve(index: Tree) -> Iterator[str]:
    """F1 of each experiment by the number of labelled sentences, and the claim of each number."""
    studies = {name: _study(name, index) for name in CURVE}
    endings = [name.removeprefix("curve-30-") for name in studies["curve-30"]["systems"]]
    yield f"| labelled sentences | {' | '.join(endings)} |\n| ---: |{' ---: |' * len(endings)}"
    for name, study in studies.items():
        scores = (with_interval(study["systems"][f"{name}-{ending}"]["f1"]) for ending in endings)
        yield f"| {CURVE[name]:,} | {' | '.join(scores)} |"
    yield "\n" + "\n".join(f"- {CURVE[name]:,}: {claim(s)}" for name, s in studies.items())
    yield ""


def _artifacts_table(_: Tree) -> Iterator[str]:
    """The stages of dvc.yaml as a Markdown table with the files that each writes."""
    yield "| stage | for each of | what it does | writes |\n|---|---|---|---|"
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
    "pretrained": lambda index: _tables([_study(PRETRAINED, index)], index, costs=True),
    "curve": _curve,
    "demo": lambda index: _tables(_demo(index), index, costs=True),
    "public": lambda index: _tables(_added(index, demo_tasks=True), index),
    "studies": lambda index: _tables(_added(index, demo_tasks=False), index),
    "artifacts": _artifacts_table,
    "settings": lambda _: settings.tables(),
}


def _demo(index: Tree) -> list[Study]:
    """The studies that no profile adds."""
    added = _studies_of_profiles(index)
    return [_study(name, index) for name in provenance.studies(index) if name not in added]


def _added(index: Tree, *, demo_tasks: bool) -> list[Study]:
    """The studies that profiles add, either for tasks of the demo or for others."""
    demo = profiles.contents(index).get(profiles.BASE, {}).get("studies", {})
    tasks = {block["task"] for block in demo.values()}
    return [
        _study(name, index)
        for name, task in _studies_of_profiles(index).items()
        if name in {*provenance.studies(index)} - CURVE.keys() and (task in tasks) == demo_tasks
    ]


def _study(name: str, index: Tree) -> Any:
    """A study with several seeds, if it was run with them; else with one."""
    return read_json(index, paths.seeds(name)) or read_json(index, paths.study(name))


def _studies_of_profiles(index: Tree) -> dict[str, str]:
    """The studies that profiles add, each with its task."""
    own = profiles.additions(profiles.contents(index)).values()
    added = {name: block for blocks in own for name, block in blocks.get("studies", {}).items()}
    return {name: block["task"] for name, block in sorted(added.items())}


def stages(path: Path = Path("dvc.yaml")) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The stages of dvc.yaml in order: name, section of params.yaml or "once", and block."""
    for verb, stage in read_yaml(path)["stages"].items():
        yield verb, stage.get("foreach", "once").strip("${}"), stage.get("do", stage)
