"""What all trained translators do, whatever their model: texts in, translations out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wxb.core.progress import tracked
from wxb.corpora.text.encoded import read_columns
from wxb.corpora.text.tokenizers import ids_of, special_tokens
from wxb.tasks.methods import Method, Trained, collator, in_batches
from wxb.tasks.translation.params import Prediction


class Hypothesis(NamedTuple):
    """A translation and its score: its log probability, normalised by its length as asked."""

    text: str
    score: float


class Translation(NamedTuple):
    """What is found for a text: the best, and with `n_best` the next ones.

    `attention` has the pieces of source and target, and what each of the latter looked at.
    """

    hypotheses: list[Hypothesis]
    cut: bool = False  # whether the end of the text was too much to read
    attention: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text


class Translator(Trained):
    """A trained model with its tokenizer, which has bos and eos."""

    prediction = Prediction()

    @classmethod
    def from_training(cls, model: Any, method: Method, targets: Path) -> Self:
        """A model that was just trained; translations grow as long as in training."""
        _, splits = read_columns(targets, ["labels"])
        return cls(
            model,
            method.tokenizer,
            shape=method.experiment.model.model_dump(),
            special=special(method.tokenizer),
            longest=int(np.diff(splits).max()),
            **method.experiment.encoding.model_dump(),
        )

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Translation]:
        """The translations of texts; one that is blank has a blank one."""
        found = [Translation([Hypothesis("", 0.0)]) for _ in texts]
        ids = source_ids(self.tokenizer, texts)
        length = self.settings["max_length"]
        there = [at for at, text in enumerate(texts) if text.strip()]
        shown = {*_chosen(there, ids, self.prediction.maps)}
        if cut := [at for at in there if len(ids[at]) > length]:
            print(
                f"{len(cut)} of {len(texts)} texts have more than {length} tokens, the first"
                f" {len(ids[cut[0]])}: the end of these is not translated",
                file=sys.stderr,
            )
        batches = in_batches([len(ids[at]) for at in there], self.prediction.batch_size)
        for places in tracked(batches, label, len(batches), unit="batch"):
            chosen = [there[place] for place in places]
            sources = [ids[at][:length] for at in chosen]
            for at, source, hypotheses in zip(chosen, sources, self.search(sources), strict=True):
                told = [Hypothesis(decoded(self.tokenizer, one), s) for one, s in hypotheses]
                attention = self._attention(source, hypotheses[0][0]) if at in shown else None
                found[at] = Translation(told, len(ids[at]) > length, attention)
        return found

    def search(
        self, sources: Sequence[NDArray[np.int32]]
    ) -> list[list[tuple[NDArray[np.int64], float]]]:
        """The best token ids of each source of a batch, without the end, and their scores."""
        import torch

        batch = collator(self.tokenizer)([{"input_ids": ids} for ids in sources])
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            tokens, scores = self.model.search(
                **{name: values.to(device) for name, values in batch.items()},
                max_new_tokens=self.settings["longest"],
                beams=self.prediction.beam,
                length_penalty=self.prediction.length_penalty,
            )
        return [
            [
                (_until(ids, self.settings["special"]["eos"]), round(float(score), 4))
                for ids, score in zip(rows, row_scores, strict=True)
            ][: self.prediction.n_best]
            for rows, row_scores in zip(tokens.cpu().numpy(), scores.cpu().numpy(), strict=True)
        ]

    def _attention(
        self, source: NDArray[np.int32], target: NDArray[np.int64]
    ) -> dict[str, Any] | None:
        """What was looked at while a target was written, where the model has attention."""
        weights = self.model.attention_weights(source, target)
        if weights is None:
            return None
        ends = [*target.tolist(), self.settings["special"]["eos"]]
        return {
            "source": [decoded(self.tokenizer, [one]) for one in source.tolist()],
            "target": [decoded(self.tokenizer, [one]) or "end" for one in ends],
            "weights": weights.round(3).tolist(),
        }

    def describe(self, given: str, prediction: Translation) -> dict[str, Any]:
        """The best translation with its score, the next ones, and whether the end was left out."""
        best, *others = prediction.hypotheses
        told: dict[str, Any] = {"translation": best.text, "score": best.score}
        if others:
            told["others"] = [one._asdict() for one in others]
        return told | ({"cut": True} if prediction.cut else {})

    def show(self, given: str, prediction: Translation) -> str:
        """The translation; of several, a line for each with its score."""
        if len(prediction.hypotheses) == 1:
            return prediction.text
        return "\n".join(f"{one.score:.4f}\t{one.text}" for one in prediction.hypotheses)


def source_ids(tokenizer: Any, texts: Sequence[str]) -> list[NDArray[np.int32]]:
    """The tokens of texts; what cannot be written as UTF-8 is read as a question mark."""
    return ids_of(tokenizer, [text.encode("utf-8", "replace").decode() for text in texts])


def decoded(tokenizer: Any, ids: Sequence[int] | NDArray[Any]) -> str:
    """The text of tokens, without the special ones, and without white space around it."""
    return str(tokenizer.backend_tokenizer.decode([int(one) for one in ids])).strip()


def special(tokenizer: Any) -> dict[str, int]:
    """The ids of the tokens that a translator needs, and how many tokens there are."""
    before, _ = special_tokens(tokenizer)
    return {
        "pad": tokenizer.pad_token_id,
        "bos": int(before[-1]),
        "eos": tokenizer.eos_token_id,
        "size": len(tokenizer),
    }


def _until(ids: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """The ids before the first end, or all."""
    return ids[: int(np.argmax(ids == end))] if end in ids else ids


def _chosen(places: Sequence[int], ids: Sequence[NDArray[Any]], number: int) -> list[int]:
    """The first so many texts that are neither short nor long: the same for every system."""
    lengths = sorted(len(ids[at]) for at in places)
    if not lengths:
        return []
    low, high = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    return [at for at in places if low <= len(ids[at]) <= high][:number]
