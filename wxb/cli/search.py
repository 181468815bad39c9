"""`wxb search`: the texts that are nearest to a query in meaning, as an encoder sees it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wxb.cli.options import AsJson, usage_error
from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.hub import packaged
from wxb.core.params import PARAMS, load
from wxb.core.params.backbones import NAMED
from wxb.project.completion import names
from wxb.reporting.charts.formatting import rounded
from wxb.reporting.terminal import grid, show, show_json

if TYPE_CHECKING:
    from wxb.cli.embeddings import Pooling

MEANING = "minilm"  # the encoder of NAMED to take where none is named
TRAINED = "modules.json"  # sentence-transformers writes it beside encoders trained for similarity


def is_folder(encoder: str | None) -> bool:
    """Whether what is given for an encoder is a folder here."""
    return bool(encoder) and Path(str(encoder)).is_dir()


def search(
    query: Annotated[str, typer.Argument(help="what to look for")],
    encoder: Annotated[
        str | None,
        typer.Option(
            callback=lambda given: str(Path(given).absolute()) if is_folder(given) else given,
            help="a backbone or experiment of params.yaml, a folder in Hugging Face's layout, or"
            f" {', '.join(NAMED)}; default: {MEANING}, or where it is not installed the first"
            " backbone",
            autocompletion=names("backbones", "experiments", more=tuple(NAMED)),
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="whose test texts are searched; default: the first corpus",
            autocompletion=names("corpora"),
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="a text file to search instead of a corpus, line by line")
    ] = None,
    cls: Annotated[
        bool, typer.Option("--cls", help="compare [CLS] vectors; default: means of all tokens")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="how many texts to show")] = 5,
    as_json: AsJson = False,
) -> None:
    r"""Show the texts nearest to QUERY, by the cosine between their vectors.

    A sentence encoder comes with `pip install --editable '.\[pretrained]'`. A small backbone from
    this project is no sentence encoder: the mean of all vectors is subtracted from its vectors,
    which are nearly equal otherwise.

    In a project the vectors of the texts are kept in .wxb/vectors for the next search of the same
    texts with the same encoder; `wxb clean --unfinished` removes them.

    Example: wxb search "a lost credit card" --encoder minilm
    """
    if not query.strip():
        usage_error("QUERY", "found an empty one; expected words to look for")
    texts = _lines(file) if file else _texts(corpus)
    pooling: Pooling = "cls" if cls else "mean"
    folder = folder_of(encoder)
    found = _search(folder, query, texts, pooling, top)
    if not _trained(folder):
        print(
            f"wxb: {folder} was not trained to tell meaning, so what it finds alike may say other"
            f" things; `--encoder {MEANING}` was",
            file=sys.stderr,
        )
    if as_json:
        show_json(found)
        return
    show(grid((rounded(row["cosine"]), row["text"]) for row in found))


def _search(
    folder: Path, query: str, texts: list[str], pooling: Pooling, top: int
) -> list[dict[str, Any]]:
    import torch

    from wxb.cli import embeddings
    from wxb.core import hub
    from wxb.corpora.text.tokenizers import load as load_tokenizer
    from wxb.training.backbones import tuning
    from wxb.training.backbones.weights import load_backbone

    with hub.checkpoint(folder):
        model, tokenizer = tuning.load(folder, load_backbone).eval(), load_tokenizer(folder)
    kept = None
    if Path(PARAMS).is_file():
        kept = paths.VECTORS
        torch.set_num_threads(load().threads)  # as in stages: more cost a small model most time
    vectors = embeddings.of_texts(model, tokenizer, texts, pooling=pooling, folder=kept)
    (asked,) = embeddings.embed(model, tokenizer, [query], pooling=pooling)
    if not _trained(folder):
        asked, vectors = embeddings.centred(asked, vectors)
    return [
        {"cosine": round(hit.cosine, 6), "place": hit.place, "text": texts[hit.place]}
        for hit in embeddings.nearest(asked, vectors, top=top)
    ]


def _trained(folder: Path) -> bool:
    """Whether an encoder was trained for vectors whose cosine tells meaning."""
    return (folder / TRAINED).is_file()


def folder_of(encoder: str | None) -> Path:
    """The folder of an encoder by its name; WxbError where there is none."""
    if encoder is None and find_spec(NAMED[MEANING]):
        encoder = MEANING
    if encoder in NAMED:
        return packaged(encoder)
    if is_folder(encoder):
        return Path(str(encoder))
    params = load()
    known = [*params.backbones, *params.experiments]
    name = encoder or known[0]
    if name not in known:
        raise WxbError(
            f"--encoder: no folder, backbone or experiment {name!r}{choices(name, known)}"
        )
    backbone = params.backbones.get(name)
    if backbone and backbone.checkpoint in NAMED and not backbone.pretraining:
        return packaged(backbone.checkpoint)
    folder = paths.model(name)
    if not folder.is_dir():
        stage = f"{'pretrain' if name in params.backbones else 'train'}@{name}"
        raise WxbError(f"{folder}: not there yet; run `dvc repro {stage}` first")
    return folder


def _texts(corpus: str | None) -> list[str]:
    """The test texts of a corpus, each once."""
    from wxb.corpora import clean

    params = load()
    name = corpus or next(iter(params.corpora))
    params.named("corpora", name)
    path = paths.clean(name) / "test.parquet"
    if not path.exists():
        raise WxbError(f"{path}: not there yet; run `dvc repro preprocess@{name}` first")
    return list(dict.fromkeys(clean.texts(path)))


def _lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise WxbError(f"{file}: expected a text file in UTF-8; {error}") from None
    if not any(lines):
        raise WxbError(f"{file}: has no line to search")
    return [line for line in lines if line]
