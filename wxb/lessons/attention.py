"""Lesson on attention: position vectors, and the attention of trained heads."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from wxb.core import compatibility, hub, pretrained
from wxb.core.errors import WxbError, counted
from wxb.core.params import Params
from wxb.core.params.lessons import AttentionLesson
from wxb.lessons import Lesson, shares_table
from wxb.models.attention import sinusoids
from wxb.reporting.figures import matrix
from wxb.reporting.parts import Charts, Section

Floats = NDArray[np.float64]

OFFSETS = {"before": -1, "itself": 0, "after": 1}  # of attended tokens that have a name
NAMES = (*OFFSETS, "first")
SUMMARY = (
    "The share of a head's attention to each kind of token. The metrics are the maxima of all"
    " columns but the last."
)


def run(params: Params, name: str) -> Lesson:
    """Show the attention of a model's last layers to a sentence; metrics are maxima over heads."""
    settings: AttentionLesson = params.block("lessons", name)
    tokens, weights = attention_weights(Path(settings.path), settings.sentence)
    layers, heads = weights.shape[:2]
    first = max(0, layers - settings.layers)
    shares_by_head = {
        (layer, head): attention_by_target(weights[layer, head])
        for layer in range(first, layers)
        for head in range(heads)
    }
    rows = {
        f"layer {layer + 1}, head {head + 1}": [*shares.values()]
        for (layer, head), shares in shares_by_head.items()
    }
    header = ["head", *next(iter(shares_by_head.values()))]
    table = shares_table("Attention of each head", header, rows)
    return Lesson(
        metrics={
            f"{name}_max": round(max(shares[name] for shares in shares_by_head.values()), 6)
            for name in NAMES
        },
        answer=_answer(shares_by_head),
        facts=[
            counted(len(tokens), "tokens"),
            f"{counted(layers, 'layers')} of {counted(heads, 'heads')}",
            settings.path,
        ],
        sections=[
            _positions(settings),
            *(_layer(layer, weights[layer], tokens) for layer in range(first, layers)),
            Section("summary", "Summary", [SUMMARY, table]),
        ],
    )


def attention_weights(folder: Path, sentence: str) -> tuple[list[str], Floats]:
    """The decoded tokens (T) of a sentence, and a model's attention (layers, heads, T, T).

    Raises WxbError if the folder has no full model, or if the sentence is too long.
    """
    with hub.checkpoint(folder, weights=True):
        tokenizer: Any = pretrained.tokenizer(folder)
        model = pretrained.model(AutoModel, folder, attn_implementation="eager").eval()
    inputs = tokenizer(sentence, return_tensors="pt", return_token_type_ids=False)
    length, longest = inputs["input_ids"].shape[1], compatibility.positions(model.config)
    if longest and length > longest:
        raise WxbError(f"`sentence` has {length} tokens; {folder} reads at most {longest}")
    with torch.no_grad():
        layers = model(**inputs, output_attentions=True).attentions  # of each layer (1, H, T, T)
    weights: Floats = torch.cat(layers).double().numpy()
    ids = inputs["input_ids"][0].tolist()
    tokens = [str(tokenizer.decode([token])).strip() or "␣" for token in ids]
    return tokens, weights


def attention_by_target(weights: Floats) -> dict[str, float]:  # "first": two or more away
    """Shares of a head's attention (T, T): `before`, `itself`, `after`, `first` and `others`."""
    length = len(weights)
    traces = {name: np.trace(weights, offset=offset) for name, offset in OFFSETS.items()}
    shares = {name: float(trace) / length for name, trace in traces.items()}
    near = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) <= 1
    first = float(weights[:, 0][~near[:, 0]].sum()) / length
    return {**shares, "first": first, "others": max(0.0, 1 - sum(shares.values()) - first)}


def _answer(shares_by_head: dict[tuple[int, int], dict[str, float]]) -> str:  # largest share
    candidates = [(s[name], head, name) for head, s in shares_by_head.items() for name in NAMES]
    share, (layer, head), name = max(candidates, key=itemgetter(0))
    targets = {"itself": "the token itself", "first": "the first token"}
    return (
        f"The most focused head is head {head + 1} of layer {layer + 1}: {share:.0%} of its"
        f" attention goes to {targets.get(name, f'the token {name}')}."
    )


def _layer(layer: int, weights: Floats, tokens: list[str]) -> Section:
    """The section on a layer, with a figure of the attention (T, T) of each head."""
    names = ("attends", "is attended")
    heads = {
        f"Head {head + 1}": matrix(attention, tokens, tokens, names=names)
        for head, attention in enumerate(weights)
    }
    note = "Rows are attending tokens, columns attended ones; rows sum to 1."
    return Section(f"layer-{layer + 1}", f"Layer {layer + 1}", [note, Charts(heads)])


def _positions(settings: AttentionLesson) -> Section:  # sinusoids and their cosines
    vectors = sinusoids(settings.positions, settings.width)
    positions = [str(position) for position in range(settings.positions)]
    entries = [str(entry) for entry in range(settings.width)]
    cosines = vectors @ vectors.T / (settings.width / 2)
    charts = {
        "Vectors": matrix(vectors, positions, entries, names=("position", "entry")),
        "Cosines": matrix(cosines, positions, positions, names=("position", "position")),
    }
    notes = [
        "Attention alone ignores the order of tokens. The first Transformer adds a vector of sines"
        " and cosines to each token, of wavelengths from 2π to 10,000 · 2π (Vaswani et al. 2017,"
        " section 3.5).",
        "The cosine between two such vectors depends only on their distance: on the right, every"
        " diagonal has one colour.",
    ]
    return Section("positions", "Positions", [*notes, Charts(charts)])
