"""Generate parts of the READMEs and of docs/: tables of results and of stages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import read_yaml
from wxb.project import profiles, provenance, revisions
from wxb.project.reproduction import benchmarks
from wxb.reporting.charts.formatting import listed
from wxb.reporting.charts.pairs import claim, verdicts
from wxb.reporting.tables import (
    caption,
    markdown,
    over_seeds,
    score_table,
    side_by_side,
    summary,
)

READMES = (Path("README.md"), Path("README.zh-TW.md"))
BLOCK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """The READMEs, and the pages of docs/ that have generated parts."""
    docs = sorted(Path("docs").rglob("*.md"))
    return [*READMES, *(path for path in docs if BLOCK.search(path.read_text(encoding="utf-8")))]


def refresh(path: Path) -> None:
    """Rewrite a page with new text between `<!-- generated: NAME -->` and `<!-- end -->`."""
    path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")


def refreshed(text: str) -> str:
    """A page with its generated parts, from dvc.yaml and the studies in git's index.

    Results that are not staged are ignored: they may come from another machine.
    Raises WxbError for a block with an unknown name, and for a study without provenance.
    """
    return BLOCK.sub(lambda match: f"{match[1]}{_block(match['name'])}{match[4]}", text)


def _block(name: str) -> str:
    writers = {
        "results": _summary,
        "demo": _results,
        "seeds": _seeds,
        "public": _public,
        "studies": _other_tasks,
        "stages": _stages_list,
        "artifacts": _artifacts_table,
    }
    index = revisions.index()
    benchmark = (paths.BENCHMARKS / f"{name}.json").as_posix()
    if benchmark in index.files(paths.BENCHMARKS.as_posix()):
        return "\n".join(_benchmark(benchmark, index))
    if name not in writers:
        raise WxbError(f"unknown generated block {name!r}{choices(name, writers)}")
    return "\n".join(writers[name]())


RERUN = (
    "A rerun on another type of CPU gives other scores, like another seed; `wxb compare` checks"
    " whether they are within the variation between trainings."
)


def _summary() -> Iterator[str]:
    """The demo's studies with several seeds: the table and the claim of each."""
    for study in _demo_with_seeds():
        yield f"**{study['title']}** {claim(study)}\n"
        yield summary(study)
        yield f"{caption(study)}\n"


def _demo_with_seeds() -> list[Mapping[str, Any]]:
    """The demo's studies with several seeds, from git's index."""
    index = revisions.index()
    added = _studies_of_profiles(index)
    names = [name for name in provenance.studies(index) if name not in added]
    return [study for name in names if (study := _with_seeds(name, index))]


def _with_seeds(study: str, tree: revisions.Tree) -> Mapping[str, Any]:
    """The file of a study with several seeds; empty if the tree has none."""
    content: Mapping[str, Any] = json.loads(tree.read(paths.seeds(study).as_posix()) or b"{}")
    return content


def _results() -> Iterator[str]:
    """The studies in git's index that no profile adds, each with its provenance."""
    index = revisions.index()
    added = _studies_of_profiles(index)
    for study in provenance.studies(index):
        if study not in added:
            origin = provenance.require(study, index)
            tables = markdown(_read(study, index), origin["seconds"])
            yield f"{tables}\n{provenance.sentence(origin)}. {RERUN}\n"


def _seeds() -> Iterator[str]:
    """The demo's studies with several seeds: the table of each, and its paired tests."""
    for study in _demo_with_seeds():
        yield over_seeds(study)
        yield f"{caption(study)}\n"
        yield f"{claim(study)}\n"
        yield "".join(f"- {sentence}\n" for sentence in verdicts(study))
        yield f"{provenance.sentence(study['made'])}.\n"


def _public() -> Iterator[str]:
    """The studies that profiles add to the tasks of the demo: one table, and the claim of each."""
    index = revisions.index()
    names = _added(index, demo_tasks=True)
    if not names:
        return
    studies = {name: _with_seeds(name, index) or _read(name, index) for name in names}
    origins = {name: _origin(studies[name], index) for name in names}
    yield side_by_side(studies, {name: origins[name].get("trained_on") for name in names})
    for text in dict.fromkeys(map(caption, studies.values())):
        names_with = [name for name, study in studies.items() if caption(study) == text]
        yield f"{listed(names_with)}: {text}\n"
    yield "".join(f"- {name}: {claim(studies[name])}\n" for name in names)
    yield from _origins(origins)


def _other_tasks() -> Iterator[str]:
    """The studies that profiles add for tasks that the demo lacks: a table each."""
    index = revisions.index()
    origins = {}
    for name in _added(index, demo_tasks=False):
        study = _with_seeds(name, index) or _read(name, index)
        origins[name] = _origin(study, index)
        yield f"**{study['title']}** (`make run STUDY={name}`)\n"
        yield f"{score_table(study)}\n{caption(study)}\n\n{claim(study)}\n"
    yield from _origins(origins)


def _origin(study: Mapping[str, Any], tree: revisions.Tree) -> provenance.Provenance:
    """Where a study was run; one with several seeds has it in its file."""
    origin: provenance.Provenance = study.get("made") or provenance.require(study["study"], tree)
    return origin


def _origins(origins: Mapping[str, provenance.Provenance]) -> Iterator[str]:
    """A sentence for each machine and date, with the studies that ran there."""
    sentences = {study: provenance.sentence(origin) for study, origin in origins.items()}
    for sentence in dict.fromkeys(sentences.values()):
        names = listed([study for study in sentences if sentences[study] == sentence])
        yield f"{sentence} ({names}). {RERUN}\n"


def _added(tree: revisions.Tree, *, demo_tasks: bool) -> list[str]:
    """The studies of a tree that profiles add, either for tasks of the demo or for others."""
    demo = profiles.contents(tree).get(profiles.BASE, {}).get("studies", {})
    tasks = {block["task"] for block in demo.values()}
    return [
        study
        for study, task in _studies_of_profiles(tree).items()
        if study in provenance.studies(tree) and (task in tasks) == demo_tasks
    ]


def _studies_of_profiles(tree: revisions.Tree) -> dict[str, str]:
    """The studies that the profiles of a tree add, each with its task."""
    own = profiles.additions(profiles.contents(tree)).values()
    added = {name: block for blocks in own for name, block in blocks.get("studies", {}).items()}
    return {name: block["task"] for name, block in sorted(added.items())}


def _read(study: str, tree: revisions.Tree) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(tree.read(provenance.study_file(study)) or b"{}")
    return content


def _stages_list() -> Iterator[str]:
    """The stages of dvc.yaml as a Markdown list, in order."""
    rows = [f"- `{verb}` ({section}): {block['desc']}" for verb, section, block in stages()]
    yield from [*rows, ""]


def _artifacts_table() -> Iterator[str]:
    """The stages of dvc.yaml as a Markdown table with the files that each writes."""
    yield "| stage | for each of | what it does | writes |"
    yield "|---|---|---|---|"
    for verb, section, block in stages():
        outs = [
            f"`{_path(out).replace('${key}', '*').replace('${item.study}', '<study>')}`"
            for kind in ("outs", "metrics", "plots")
            for out in block.get(kind, [])
        ]
        paths_ = ", ".join(out for out in outs if paths.COST.as_posix() not in out)
        yield f"| `{verb}` | {section} | {block['desc']} | {paths_} |"
    yield ""


def _benchmark(path: str, tree: revisions.Tree) -> Iterator[str]:
    """The table of a benchmark, and where it was made."""
    content = json.loads(tree.read(path) or b"{}")
    yield from benchmarks.table(content)
    yield f"\n{provenance.sentence(content['made'])}.\n"


def stages(path: Path = Path("dvc.yaml")) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The stages of dvc.yaml in order: name, section of params.yaml or "once", and block."""
    for verb, stage in read_yaml(path)["stages"].items():
        yield verb, stage.get("foreach", "once").strip("${}"), stage.get("do", stage)


def _path(out: str | dict[str, object]) -> str:
    """The path of an output in dvc.yaml, which may have options."""
    return out if isinstance(out, str) else next(iter(out))
