"""Attention looked at: positions as vectors, who may see whom, and what trained heads look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from wxb.core import hub, pretrained
from wxb.core.errors import WxbError
from wxb.core.params import Params
from wxb.core.params.lessons import AttentionLesson
from wxb.lessons import Lesson, Part, Table
from wxb.models import masks
from wxb.models.attention import sinusoids
from wxb.reporting.charts.figures import matrix

Floats = NDArray[np.float64]

SHOWN = 6  # tokens of the small figures of masks
PADDED = 2  # of them, where there is padding
# What a head may look at that has a name: the token before, itself, the one after, the first.
PLACES = {"before": -1, "itself": 0, "after": 1}
NAMED = (*PLACES, "first")


def run(params: Params, name: str) -> Lesson:
    """Read a sentence with a trained model, and keep what its heads looked at."""
    settings: AttentionLesson = params.named("lessons", name)
    tokens, weights = attended(Path(settings.path), settings.sentence)
    layers, heads = weights.shape[:2]
    first = max(0, layers - settings.layers)
    looks = {
        (layer, head): habits(weights[layer, head])
        for layer in range(first, layers)
        for head in range(heads)
    }
    return Lesson(
        metrics={
            f"{place}_max": round(max(shares[place] for shares in looks.values()), 6)
            for place in NAMED
        },
        answer=_answer(looks),
        facts=[f"{len(tokens)} tokens", f"{layers} layers of {heads} heads", settings.path],
        parts=[
            _positions(settings),
            _masks(),
            *[
                Part(
                    f"Layer {layer + 1}",
                    ["A row is a token that looks, a column one that is looked at; rows sum to 1."],
                    {
                        f"Head {head + 1}": matrix(
                            weights[layer, head],
                            tokens,
                            tokens,
                            names=("looks", "is seen"),
                            every=True,
                        )
                        for head in range(heads)
                    },
                )
                for layer in range(first, layers)
            ],
            Part(
                "Habits",
                [
                    "The share of a head's attention that goes to each place, over all tokens; the"
                    " metrics hold the largest of each column but the last.",
                    "A backbone that is trained here from its first weights begins with heads that"
                    " look at neighbours (wxb/training/backbones/initialization.py): what training"
                    " made of them shows here, not that it would find such heads by itself.",
                ],
                tables={
                    "": Table(
                        ["head", *next(iter(looks.values()))],
                        [
                            [f"layer {layer + 1}, head {head + 1}", *shares.values()]
                            for (layer, head), shares in looks.items()
                        ],
                        [[*shares.values()] for shares in looks.values()],
                    )
                },
            ),
        ],
    )


def attended(folder: Path, sentence: str) -> tuple[list[str], Floats]:
    """The tokens (T) of a sentence and the attention (layers, heads, T, T) between them.

    Raises WxbError for a folder without a whole model, or where the sentence is too long for it.
    """
    if not (folder / "config.json").exists():
        raise WxbError(
            f"{folder}: expected a whole model with config.json; an adapter has no attention"
        )
    with hub.checkpoint(folder, weights=True):
        tokenizer: Any = pretrained.tokenizer(folder)
        model = pretrained.model(AutoModel, folder, attn_implementation="eager").eval()
    inputs = tokenizer(sentence, return_tensors="pt", return_token_type_ids=False)
    length, longest = inputs["input_ids"].shape[1], model.config.max_position_embeddings
    if length > longest:
        raise WxbError(
            f"`sentence` has {length} tokens; {folder} reads {longest}: take a shorter one"
        )
    with torch.no_grad():
        layers = model(**inputs, output_attentions=True).attentions  # of each layer (1, H, T, T)
    weights: Floats = torch.cat(layers).double().numpy()
    ids = inputs["input_ids"][0].tolist()
    tokens = [str(tokenizer.decode([token])).strip() or "␣" for token in ids]
    return tokens, weights


def habits(weights: Floats) -> dict[str, float]:
    """The share of one head's attention (T, T) that goes to places with a name, and to the rest."""
    length = len(weights)
    shares = {
        place: float(np.trace(weights, offset=offset)) / length for place, offset in PLACES.items()
    }
    near = np.abs(np.subtract.outer(np.arange(length), np.arange(length))) <= 1
    first = float(weights[:, 0][~near[:, 0]].sum()) / length
    return {**shares, "first": first, "others": max(0.0, 1 - sum(shares.values()) - first)}


def _answer(looks: dict[tuple[int, int], dict[str, float]]) -> str:
    (layer, head), place = max(
        ((key, place) for key in looks for place in NAMED),
        key=lambda found: looks[found[0]][found[1]],
    )
    share = looks[layer, head][place]
    where = {"itself": "the token itself", "first": "the first token"}.get(
        place, f"the token {place}"
    )
    return (
        f"The most settled head is number {head + 1} of layer {layer + 1}: {share:.0%} of its"
        f" attention goes to {where}."
    )


def _positions(settings: AttentionLesson) -> Part:
    waves = sinusoids(settings.positions, settings.width)
    places = [str(place) for place in range(settings.positions)]
    alike = waves @ waves.T / (settings.width / 2)
    return Part(
        "Where a token stands",
        [
            "Attention alone does not know the order of tokens. The first Transformer adds a vector"
            " of sines and cosines to each token, of wavelengths from 2π to 10,000 · 2π (Vaswani et"
            " al. 2017, section 3.5).",
            "The cosine between two such vectors depends only on how far apart they stand: on the"
            " right, every diagonal has one colour.",
        ],
        {
            "The vectors": matrix(
                waves, places, list(map(str, range(settings.width))), names=("position", "entry")
            ),
            "Cosines between them": matrix(alike, places, places, names=("position", "position")),
        },
    )


def _masks() -> Part:
    names = [str(place + 1) for place in range(SHOWN)]
    is_token = torch.tensor([[1] * (SHOWN - PADDED) + [0] * PADDED])
    causal = masks.causal(SHOWN, SHOWN)
    padding = masks.padding(is_token)[0, 0].expand(SHOWN, SHOWN)
    drawn = {"Causal": causal, "Padding": padding, "Both": causal & padding}
    return Part(
        "Who may see whom",
        [
            f"A decoder's token sees itself and those before it. Nobody sees padding: here the last"
            f" {PADDED} of {SHOWN} tokens are that. Masks are joined by “and”.",
        ],
        {
            caption: matrix(
                mask.double().numpy(), names, names, names=("looks", "is seen"), height=240
            )
            for caption, mask in drawn.items()
        },
    )
