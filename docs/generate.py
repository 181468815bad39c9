"""Write the generated parts of the READMEs and of docs/: `python -m docs.generate`.

These are tables of results, stages and settings, the figure of the curve, and docs/commands.md.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import starmap
from math import log
from pathlib import Path
from typing import Any, Union

import typer
from pydantic import create_model
from typer.cli import get_docs_for_click

from wxb.cli.app import app
from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import PARAMS, Params, load, read_yaml, tasks
from wxb.project import benchmarks, provenance, revisions, status
from wxb.project.revisions import Tree, read_json
from wxb.project.root import at_root
from wxb.reporting.figures import chips
from wxb.reporting.formatting import listed, with_interval
from wxb.reporting.pairs import baseline_names, conclusion, conclusions, trained_names
from wxb.reporting.parts import template
from wxb.reporting.tables import headline_table, reading_notes, score_table, training_table

READMES = (Path("README.md"), Path("README.zh-TW.md"))
COMMANDS = Path("docs/commands.md")
COMMANDS_HEAD = """# Commands

```sh
wxb --help
```

`wxb COMMAND --help` prints the same text as this page. `python -m docs.generate` generates it.
Run commands in the root of the project, inside its environment (`source .venv/bin/activate`).
"""
BLOCK = re.compile(r"(<!-- generated: (?P<name>\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Write `current_texts`, and the machines of results in git's index to reports/provenance.json.

    Raises WxbError for a study without provenance.
    """
    provenance.write(load(), revisions.index())
    for path, text in current_texts().items():
        with publish(path) as (draft,):
            draft.write_text(text, encoding="utf-8")


def current_texts() -> dict[Path, str]:
    """READMEs and pages with new blocks, new figures of the curve, and COMMANDS, by path."""
    pages = [*READMES, *sorted(Path("docs").rglob("*.md"))]
    texts = {page: refresh_blocks(page.read_text(encoding="utf-8")) for page in pages}
    texts[COMMANDS] = _commands_page()
    for scheme, colours in SCHEMES.items():
        figure = Path(f"docs/img/curve-{scheme}.svg")
        texts[figure] = _curve_figure(revisions.index(), *colours)
    return texts


def refresh_blocks(text: str) -> str:
    """A page with new text between `<!-- generated: NAME -->` and `<!-- end -->`.

    Reads dvc.yaml, the code, and results in git's index: others may come from another machine.
    Raises WxbError for a study without provenance, and KeyError for an unknown NAME.
    """
    return BLOCK.sub(lambda match: f"{match[1]}{_block_text(match['name'])}{match[4]}", text)


def _block_text(name: str) -> str:
    """The text of a block from git's index: a benchmark of this name, else by TABLES or WRITERS."""
    index = revisions.index()
    if benchmark := read_json(index, paths.BENCHMARKS / f"{name}.json"):
        made = provenance.sentence(benchmark["made"])
        return "\n".join([*benchmarks.table(benchmark), f"\n{made}.\n"])
    return "\n".join(_tables(name, index) if name in TABLES else WRITERS[name](index))


PRETRAINED = "pretrained"  # the study of weights that know a language comes first
TABLES = {  # blocks and their studies; those of CURVES have their own
    PRETRAINED: [PRETRAINED],
    "generation": ["prompted"],
    "texts": ["films-200", "films-1000", "titles-200", "titles-1000"],
    "questions": ["questions"],
    "whisper": ["whisper", "digits"],
    "demo": ["ner"],
    "public": ["conll2003", "presidio", "weibo"],
    "studies": ["chat", "news", "reviews", "speech", "translation"],
}
CURVES = ("curve", "tweets", "personal")  # blocks; each has the studies NAME-<number of texts>
SCHEMES = {"light": ("#1f2328", "#d1d9e0"), "dark": ("#f0f6fc", "#3d444d")}  # text and rules
Study = Mapping[str, Any]  # a table as JSON: reports/studies or reports/seeds


def _results(index: Tree) -> Iterator[str]:
    """Answer, notes and `test` table of PRETRAINED, without baselines."""
    study = _study(PRETRAINED, index)
    yield f"**{study['title']}** {conclusions(study)[0]} {reading_notes(study)}\n"
    systems = {name: study["systems"][name] for name in trained_names(study)}
    yield headline_table({**study, "systems": systems, "further": {}}).markdown()


def _tables(block: str, index: Tree) -> Iterator[str]:
    """Tables, notes, conclusions and origins of a block's studies; times if it has only one."""
    studies = [study for name in TABLES[block] if (study := _study(name, index))]
    for study in studies:
        name, table = study["study"], score_table(study, with_counts=False)
        yield f"**{study['title']}** (`make run STUDY={name}`)\n"
        yield f"{table.markdown()}\n{reading_notes(study)}\n\n{conclusion(study)}\n"
        if len(TABLES[block]) == 1:
            seconds = provenance.find(name, index)["seconds"]
            yield training_table(study, seconds).markdown()
            if "made" in study:  # by several seeds, the costs of which are not kept
                one = provenance.sentence(provenance.find(name, index))
                yield f"\nTimes are those of a run with one seed. {one}.\n"
    yield from _origins(studies, index)


def _origins(studies: Iterable[Study], index: Tree) -> Iterator[str]:
    """A sentence for each machine and date, with the studies that were made there."""
    origins = defaultdict[str, list[str]](list)
    for study in studies:
        made = study.get("made") or provenance.find(study["study"], index)
        origins[provenance.sentence(made)].append(study["study"])
    for sentence, names in origins.items():
        yield f"{sentence} ({listed(names)}).\n"


def _curve(curve: str, index: Tree) -> Iterator[str]:
    """F1 of each experiment (column) by number of texts (row); conclusions, origins of a curve."""
    studies, scores = _curve_scores(curve, index)
    yield f"| labelled texts | {' | '.join(scores)} |\n| ---: |{' ---: |' * len(scores)}"
    for size in studies:
        cells = (with_interval(f1[size]) if size in f1 else "–" for f1 in scores.values())
        yield f"| {size:,} | {' | '.join(cells)} |"
    yield "\n" + "\n".join(f"- {size:,}: {conclusion(study)}" for size, study in studies.items())
    yield ""
    yield from _origins(studies.values(), index)


def _curve_scores(name: str, index: Tree) -> tuple[dict[int, Study], dict[str, dict[int, Any]]]:
    """The studies of a curve by number; the F1 with its interval by experiment and number.

    Experiments are named without their study. The first of CURVES also has PRETRAINED, with 1,300
    texts, without the experiments that only it has.
    """
    points = [(1300, PRETRAINED)] if name == CURVES[0] else []
    for study in provenance.studies(index):
        if match := re.fullmatch(rf"{name}-(\d+)", study):
            points.append((int(match[1]), study))
    points.sort()
    studies = {size: _study(study, index) for size, study in points}
    scores = defaultdict[str, dict[int, Any]](dict)
    for size, study in points:
        for experiment, system in studies[size]["systems"].items():
            scores[experiment.removeprefix(f"{study}-")][size] = system["f1"]
    return studies, {name: by_size for name, by_size in scores.items() if [*by_size] != [1300]}


def _curve_figure(index: Tree, text: str, rule: str) -> str:
    """The first of CURVES as an SVG with intervals, baselines in grey; SCHEMES has the colours."""
    studies, scores = _curve_scores(CURVES[0], index)
    width = log(max(studies) / min(studies))
    place = {size: (log(size) - log(min(studies))) / width for size in studies}
    grey = {name for name in scores if f"{PRETRAINED}-{name}" in baseline_names(studies[1300])}
    labels: dict[str, float] = {}  # F1 at the labels of the lines, 0.06 apart
    for name, by_size in sorted(scores.items(), key=lambda item: [*item[1].values()][-1]["value"]):
        last = [*by_size.values()][-1]["value"]
        labels[name] = max([last, *(label + 0.06 for label in labels.values())])
    lines = [
        (name, chip.colour, scores[name], labels[name])
        for name, chip in chips(scores, grey).items()
    ]
    return template("curve.svg").render(text=text, rule=rule, place=place, lines=lines)


def _artifacts_table(_: Tree) -> Iterator[str]:
    """The stages of dvc.yaml as a Markdown table with the files that each writes, except costs."""
    yield "| stage | for each of | what it does | writes |\n|---|---|---|---|"
    for verb, section, block in stages():
        files = [
            f"`{file.replace('${key}', '*').replace('${item.study}', '<study>')}`"
            for file in status.outputs(block)
            if paths.COST.as_posix() not in file
        ]
        yield f"| `{verb}` | {section} | {block['desc']} | {', '.join(files)} |"
    yield ""


def _commands_page() -> str:
    """COMMANDS_HEAD and the help of each command of `wxb`, without the option `--help`."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="wxb")
    _, _, commands = get_docs_for_click(obj=command, ctx=context, name="wxb").partition("\n## ")
    commands = commands.replace("* `--help`: Show this message and exit.\n", "")
    commands = commands.replace("**Options**:\n\n\n", "")  # of commands whose only option is --help
    stripped = re.sub(r"[ \t]+$", "", commands, flags=re.MULTILINE).rstrip()
    return f"{COMMANDS_HEAD}\n## {stripped}\n"


def _settings_tables() -> Iterator[str]:
    """Keys, values and defaults of each class of blocks as a Markdown table, the file's first."""
    methods = [(task, method) for task in tasks.names() for method in tasks.methods(task)]
    corpora: Any = Union[*map(tasks.corpus_class, tasks.names())]
    experiments: Any = Union[*starmap(tasks.experiment_class, methods)]
    unions: Any = {"corpora": dict[str, corpora], "experiments": dict[str, experiments]}
    form = create_model("Params", __base__=Params, __doc__=Params.__doc__, **unions)
    schema = form.model_json_schema()
    classes = dict(sorted((_title(name), block) for name, block in schema["$defs"].items()))
    for title, block in {PARAMS.name: schema, **classes}.items():
        rows = []
        for key, value in block.get("properties", {}).items():
            default = json.dumps(value["default"]) if "default" in value else "required"
            default = "a block" if default.startswith("{") else default
            rows.append(f"`{key}` | {_allowed_values(value)} | {default}")
        yield f"### {title}\n\n{block.get('description', '')}\n"
        yield "\n".join(["key | value | default", "---|---|---", *rows, ""])


def _title(name: str) -> str:
    """A heading for a class of the schema, with its task if several tasks have such a class."""
    task = re.match("wxb__tasks__([a-z]+)__", name)
    own = name.rpartition("__params__")[2].rpartition("__")[2] if name.startswith("wxb") else name
    return f"{task[1]} {own}" if task else re.sub("_+", " ", own.replace("_Literal", "")).strip()


def _allowed_values(schema: Mapping[str, Any]) -> str:
    """The values that a key may have, as Markdown with links, by its JSON schema."""
    match schema:
        case {"$ref": ref}:
            title = _title(ref.rpartition("/")[2])
            return f"[{title}](#{title.lower().replace(' ', '-')})"
        case {"anyOf": options} | {"oneOf": options}:
            return " or ".join(dict.fromkeys(map(_allowed_values, options)))
        case {"enum": constants}:
            return " or ".join(f"`{constant}`" for constant in constants)
        case {"const": constant}:
            return f"`{constant}`"
        case {"type": "array", "items": items}:
            return f"a list of: {_allowed_values(items)}"
        case {"type": "object", "additionalProperties": Mapping() as values}:
            return f"by name: {_allowed_values(values)}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[bound]}" for bound, sign in signs.items() if bound in schema]
    return " ".join([schema.get("type", "any"), ", ".join(bounds)]).strip()


WRITERS: dict[str, Callable[[Tree], Iterator[str]]] = {
    "results": _results,
    **{name: partial(_curve, name) for name in CURVES},
    "artifacts": _artifacts_table,
    "settings": lambda _: _settings_tables(),
}


def _study(name: str, index: Tree) -> Any:
    """The table of a study with several seeds, else of one; empty if there is none."""
    return read_json(index, paths.seeds(name)) or read_json(index, paths.study(name))


def stages(path: Path = Path("dvc.yaml")) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each stage of dvc.yaml: name, the section whose blocks it runs for or "once", definition."""
    for verb, stage in read_yaml(path)["stages"].items():
        yield verb, stage.get("foreach", "once").strip("${}"), stage.get("do", stage)


if __name__ == "__main__":
    try:
        at_root(main)()
    except WxbError as error:
        sys.exit(str(error))
