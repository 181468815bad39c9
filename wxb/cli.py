"""The command `wxb`: what the two engines don't do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from wxb import profiles, readme
from wxb.checkpoints import FOLDER as CHECKPOINTS
from wxb.errors import WxbError
from wxb.params import Params, load

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
console = Console()

Study = Annotated[str, typer.Argument(help="a study of params.yaml, or all")]


@app.callback()
def describe() -> None:
    """Train and compare models reproducibly. The work itself: `dvc repro` or `snakemake`."""


@app.command()
def params(
    profile: Annotated[str | None, typer.Argument(help="tiny, demo or full")] = None,
) -> None:
    """Set the sizes in params.yaml from params/PROFILE.yaml; without PROFILE, check the file."""
    if profile is None:
        load()
        print("params.yaml is valid")
        return
    changes = profiles.switch(profile)
    if not changes:
        print(f"params.yaml has the sizes of {profile} already")
        return
    table = Table("key", "before", "after", title=f"params.yaml is now {profile}")
    for change in changes:
        table.add_row(change.key, str(change.before), str(change.after))
    console.print(table)


@app.command()
def table(study: Study = "all") -> None:
    """Print the comparison table of a study, and where its report is."""
    for name in _studies(load(), study):
        path = Path("reports/studies", f"{name}.md")
        if not path.exists():
            raise WxbError(f"{path}: not there yet; run `dvc repro report@{name}` first")
        console.print(Markdown(path.read_text(encoding="utf-8")))
        print(f"\nReport: {Path('reports', f'{name}.html').resolve()}")


@app.command()
def report() -> None:
    """Join the reports of all studies into reports/index.html."""
    from wxb.reporting.index import write_index

    print(f"Index: {write_index(load()).resolve()}")


@app.command()
def clean(
    dry_run: Annotated[bool, typer.Option(help="only say what would be removed")] = False,
) -> None:
    """Remove what blocks no longer in params.yaml left behind, and checkpoints of killed runs."""
    found = list(_left_behind(load()))
    for path in found:
        print(path)
        if not dry_run:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    print(f"{len(found)} {'to remove' if dry_run else 'removed'}")


@app.command("readme")
def refresh_readme() -> None:
    """Write the generated parts of both READMEs anew: results and stages."""
    for path in readme.READMES:
        readme.refresh(path)


def _studies(params: Params, study: str) -> list[str]:
    if study == "all":
        return list(params.studies)
    params.named("studies", study)
    return [study]


def _left_behind(params: Params) -> Iterator[Path]:
    """What stages wrote for blocks that params.yaml no longer has."""
    experiments, corpora, backbones = params.experiments, params.corpora, params.backbones
    known: dict[str, set[str]] = {
        "data/raw": set(corpora),
        "data/clean": set(corpora),
        "data/tokenizers": set(backbones),
        "data/features": set(experiments),
        "data/targets": set(experiments),
        "models": {*backbones, *experiments},
        "reports/metrics/pretrain": set(backbones),
        "reports/training/pretrain": set(backbones),
        "reports/studies": set(params.studies),
        **{
            f"reports/{kind}/{study}": set(block.experiments)
            for kind in ("metrics", "predictions", "training")
            for study, block in params.studies.items()
        },
    }
    for folder, names in known.items():
        for path in sorted(Path(folder).glob("[!.]*")):
            if path.stem not in names and path.name not in names:
                yield path
    yield from sorted(CHECKPOINTS.glob("*"))


def main() -> None:
    """Run the command line; a WxbError is told without a traceback, exit code 1."""
    try:
        app()
    except WxbError as error:
        print(f"wxb: {error}", file=sys.stderr)
        sys.exit(1)
