"""What all trained classifiers do, however they do it: texts in, classes and probabilities out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import Encoded, joined, part, read_columns, read_encoded
from wxb.corpora.text.tokenizers import encode, special_tokens
from wxb.metrics import DIGITS
from wxb.tasks import methods
from wxb.tasks.classification import params
from wxb.tasks.classification.metrics import calibration
from wxb.tasks.classification.record.giveaways import giveaways
from wxb.tasks.methods import Trained

SHOWN = 24  # stretches of a text that are told to have decided, the weightiest
PROBABILITY = 6  # significant digits


class Prediction(NamedTuple):
    """The likeliest class, how likely each is, and what of the text decided, where that is asked.

    `evidence` has stretches of the text, start and end, with what each adds to the predicted class
    over the next likely.
    """

    label: str
    probabilities: Mapping[str, float]
    evidence: tuple[tuple[int, int, float], ...] | None = None


class Classifier(Trained):
    """A trained model whose output `logits` has one number a class."""

    prediction = params.Prediction(explained=0)

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of logits."""
        found: list[str] = self.settings["labels"]
        return found

    def predictions(self, texts: Sequence[str], /, *, label: str) -> list[Prediction]:
        """The likeliest class of each text; of the first `prediction.explained` what decided."""
        encoded = self.read(texts)
        logits = self.logits(encoded, texts, label=label)
        likely = calibration.softmax(logits, self.settings.get("temperature", 1.0))
        number = min(self.prediction.explained, len(texts))
        told = [*self.evidence(part(encoded, 0, number), texts[:number], logits)] if number else []
        return [
            Prediction(
                self.labels[row.argmax()],
                {
                    name: float(f"{p:.{PROBABILITY}g}")
                    for name, p in zip(self.labels, row.tolist(), strict=True)
                },
                told[at] if at < len(told) else None,
            )
            for at, row in enumerate(likely)
        ]

    def read(self, texts: Sequence[str]) -> Encoded:
        """The tokens of texts that the model may read."""
        kept = self.settings["giveaways"]
        return without_giveaways(encode(self.tokenizer, texts), texts, kept)

    def logits(self, encoded: Encoded, texts: Sequence[str], *, label: str) -> NDArray[np.float64]:
        """Logits (N, K) of texts."""
        items = inputs(encoded, self.tokenizer, self.settings["max_length"], self.settings["keep"])
        found = [output["logits"] for output in self.outputs(items, label=label)]
        return np.array(found, np.float64).reshape(-1, len(self.labels))

    def evidence(
        self, encoded: Encoded, texts: Sequence[str], logits: NDArray[np.float64]
    ) -> Iterable[tuple[tuple[int, int, float], ...]]:
        """What decided, of the first texts: the gradient of each token's embedding times it.

        It is that of the likeliest class's logit less the next one's (Simonyan et al. 2013;
        Kindermans et al. 2016). Tokens of one word are summed.
        """
        import torch

        from wxb.training.batches import collate

        settings = self.settings
        items = inputs(encoded, self.tokenizer, settings["max_length"], settings["keep"])
        before = len(special_tokens(self.tokenizer)[0])
        device = next(self.model.parameters()).device
        for at, item in enumerate(items):
            batch = collate([item], self.tokenizer.pad_token_id)
            held: list[Any] = []
            table = self.model.get_input_embeddings()
            hook = table.register_forward_hook(lambda *given, held=held: held.append(given[2]))
            try:
                with torch.enable_grad():
                    output = self.model(**{name: value.to(device) for name, value in batch.items()})
                    best, second = _two(output["logits"][0])
                    (gradient,) = torch.autograd.grad(best - second, held[0])
            finally:
                hook.remove()
            weights = (gradient * held[0]).sum(dim=-1)[0].detach().float().cpu().numpy()
            tokens = slice(encoded.splits[at], encoded.splits[at + 1])
            starts, ends = encoded.starts[tokens], encoded.ends[tokens]
            room = _room(settings["max_length"], self.tokenizer)
            places = kept_places(len(starts), room, settings["keep"])
            found = zip(
                starts[places].tolist(),
                ends[places].tolist(),
                weights[before : before + len(places)].tolist(),
                strict=True,
            )
            yield weightiest(by_word(texts[at], found))

    def calibrate(self, records: Sequence[Record], *, label: str) -> None:
        """Choose the temperature at which the classes of validation records are likeliest."""
        texts = [record.input for record in records]
        logits = self.logits(self.read(texts), texts, label=label)
        number = {name: place for place, name in enumerate(self.labels)}
        known = [at for at, record in enumerate(records) if record.gold in number]
        gold = np.array([number[records[at].gold] for at in known], np.int64)
        self.settings["temperature"] = calibration.temperature(logits[known], gold)

    def further_metrics(
        self, records: Sequence[Record], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """The temperature, and what the calibration error would be without it."""
        temperature = self.settings["temperature"]
        likely = np.array([[*one.probabilities.values()] for one in predictions])
        logs = np.log(np.maximum(likely.reshape(-1, len(self.labels)), 1e-300))
        confidences = calibration.softmax(temperature * logs).max(axis=1)
        pairs = zip(records, predictions, strict=True)
        right = np.array([record.gold == one.label for record, one in pairs])
        sums = calibration.histogram(right, confidences).sum(axis=0)
        before = round(float(calibration.error(sums)), DIGITS)
        return {"temperature": temperature, "ece_uncalibrated": before}

    def describe(self, given: str, prediction: Prediction) -> dict[str, Any]:
        """The class and all probabilities, the likeliest first; and what decided, if asked."""
        likely = sorted(prediction.probabilities.items(), key=lambda one: (-one[1], one[0]))
        told: dict[str, Any] = {"label": prediction.label, "probabilities": dict(likely)}
        if prediction.evidence is not None:
            told["evidence"] = [
                {"start": start, "end": end, "text": given[start:end], "weight": weight}
                for start, end, weight in prediction.evidence
            ]
        return told

    def show(self, given: str, prediction: Prediction) -> str:
        """The class, how likely it is, and the text."""
        return f"{prediction.label} {prediction.probabilities[prediction.label]:.3f}\t{given}"


class Method(methods.Method):
    """A method whose input is a text without its giveaways, unless these are kept."""

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item a text: its ids and the number of its class."""
        settings, texts = self.experiment.encoding, [record.input for record in records]
        encoded = without_giveaways(read_encoded(features), texts, settings.giveaways)
        items = inputs(encoded, self.tokenizer, settings.max_length, settings.keep)
        columns, _ = read_columns(targets, self.TARGETS)
        return [{**item, "labels": one} for item, one in zip(items, columns["labels"], strict=True)]


def without_giveaways(encoded: Encoded, texts: Sequence[str], kept: str) -> Encoded:
    """The tokens of texts, but for those that touch what tells the publisher, unless it is kept."""
    if kept == "kept":
        return encoded
    columns = []
    for at, text in enumerate(texts):
        tokens = slice(encoded.splits[at], encoded.splits[at + 1])
        starts, ends = encoded.starts[tokens], encoded.ends[tokens]
        inside = np.zeros(len(starts), bool)
        for start, end in giveaways(text):
            inside |= (starts < end) & (ends > start)
        one = {
            name: values[tokens][~inside]
            for name, values in encoded._asdict().items()
            if name != "splits"
        }
        columns.append((one, np.array([0, len(one["ids"])])))
    if not columns:
        return encoded
    together, splits = joined(columns)
    return Encoded(**together, splits=splits)


def inputs(
    encoded: Encoded, tokenizer: Any, max_length: int, keep: str
) -> list[dict[str, NDArray[np.int32]]]:
    """One item a text: `input_ids` with the special tokens around, `max_length` at most."""
    before, after = special_tokens(tokenizer)
    room = _room(max_length, tokenizer)
    return [
        {
            "input_ids": np.concatenate(
                [before, encoded.ids[start:stop][kept_places(stop - start, room, keep)], after]
            )
        }
        for start, stop in zip(encoded.splits[:-1], encoded.splits[1:], strict=True)
    ]


def kept_places(length: int, room: int, keep: str) -> NDArray[np.int64]:
    """Which tokens of a text are read: all, the first, or a quarter from the start and the last."""
    first = room // 4 if keep == "ends" else room
    if length <= room:
        return np.arange(length)
    return np.concatenate([np.arange(first), np.arange(length - (room - first), length)])


def _room(max_length: int, tokenizer: Any) -> int:
    return max_length - sum(map(len, special_tokens(tokenizer)))


def by_word(text: str, tokens: Iterable[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """The stretches of tokens with those summed that touch, letters on both sides."""
    words: list[tuple[int, int, float]] = []
    for start, end, weight in tokens:
        if words and words[-1][1] >= start and _one_word(text, start):
            first, last, before = words[-1]
            words[-1] = (first, max(last, end), before + weight)
        elif end > start:
            words.append((start, end, weight))
    return words


def _one_word(text: str, at: int) -> bool:
    """Whether the characters before and at a place belong to one word."""
    return at > 0 and all(c.isalnum() and c.isascii() for c in text[at - 1 : at + 1])


def weightiest(
    found: Sequence[tuple[int, int, float]],
) -> tuple[tuple[int, int, float], ...]:
    """The SHOWN stretches of the largest weights, for or against, in the order of the text."""
    kept = sorted(found, key=lambda one: (-abs(one[2]), one[0]))[:SHOWN]
    return tuple((start, end, round(weight, 4)) for start, end, weight in sorted(kept) if weight)


def _two(logits: Any) -> Any:
    """The largest logit and the next."""
    found, _ = logits.topk(min(2, len(logits)))
    return found[0], (found[1] if len(found) > 1 else 0.0)
