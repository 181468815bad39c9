"""Named entities by writing: the model answers a text with `TYPE|mention;;TYPE|mention`.

Torch and the models are imported where a model is needed, so that the stages before training start
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken

from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Columns, Encoded, read_columns, read_encoded
from wxb.corpora.text.tokenizers import ids_of, special_tokens
from wxb.corpora.text.windows import Windows, characters
from wxb.tasks import methods
from wxb.tasks.ner.generation import answers
from wxb.tasks.ner.params import Generation
from wxb.tasks.ner.predictor import Recognizer, ScoredSpan
from wxb.tasks.ner.record import encoding
from wxb.tasks.ner.record.alignment import Status
from wxb.tasks.ner.record.spans import Span

if TYPE_CHECKING:
    from wxb.training.backbones.generator import Generator


def lay(
    encoded: Encoded,
    windows: Windows,
    records: Sequence[Record],
    types: Sequence[str],
    tokenizer: Any,
) -> tuple[*Columns, NDArray[np.int8]]:
    """The answers of some windows, where each begins, and the status of every gold span."""
    texts, told = [], []
    readings: list[list[tuple[set[Span], set[Span]]]] = [[] for _ in records]
    for window, row in enumerate(windows.rows):
        record = records[row]
        start, end = _characters(encoded, windows, window, record.input)
        held = {s for s in record.gold if start <= s.start and s.end <= end}
        texts.append(record.input[start:end])
        told.append(_moved(sorted(s for s in held if s.type in types), -start))
        answer = "".join(answers.pieces(texts[-1], told[-1]))
        read = _moved(answers.locate(texts[-1], answers.parse(answer)), start)
        readings[row].append((held, set(read)))
    ids, splits = _answer_ids(tokenizer, texts, told)
    statuses = [
        _status(span, readings[row], types)
        for row, record in enumerate(records)
        for span in record.gold
    ]
    return {"labels": ids}, splits, np.array(statuses, np.int8)


def _characters(encoded: Encoded, windows: Windows, window: int, text: str) -> tuple[int, int]:
    """The characters that a window reads."""
    row, first, last = (int(windows[at][window]) for at in range(3))
    return characters(encoded, row, first, last, text)


def _moved(spans: Iterable[Span], by: int) -> list[Span]:
    return [Span(span.start + by, span.end + by, span.type) for span in spans]


def _status(
    span: Span, readings: Sequence[tuple[set[Span], set[Span]]], types: Sequence[str]
) -> Status:
    """By the windows of its text: what each holds of gold, and what reading its answer finds."""
    if span.type not in types:
        return Status.LOST
    found = [span in read for held, read in readings if span in held]
    if not found:
        return Status.SPLIT
    return Status.KEPT if all(found) else Status.REPAIRED


def _answer_ids(
    tokenizer: Any, texts: Sequence[str], told: Sequence[Sequence[Span]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The tokens of every answer with the end of text, end to end, and where each begins."""
    cut = [answers.pieces(text, spans) for text, spans in zip(texts, told, strict=True)]
    markers = sorted({piece for row in cut for piece in (*row[0::3], *row[2::3])})
    known = dict(zip(markers, ids_of(tokenizer, markers, special=True), strict=True))
    mentions = iter(ids_of(tokenizer, [piece for row in cut for piece in row[1::3]]))
    rows = [
        np.concatenate(
            [
                *(
                    next(mentions) if place % 3 == 1 else known[piece]
                    for place, piece in enumerate(row)
                ),
                [tokenizer.eos_token_id],
            ]
        )
        for row in cut
    ]
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.concatenate([np.zeros(0), *rows]).astype(np.int32), splits.astype(np.int64)


def _prompts(
    encoded: Encoded, windows: Windows, chosen: Iterable[int], tokenizer: Any
) -> list[NDArray[np.int32]]:
    """What asks for the answer to each of the chosen windows, in training as in prediction."""
    before, after = special_tokens(tokenizer)
    boundary = ids_of(tokenizer, [answers.BOUNDARY], special=True)[0]
    return [
        np.concatenate([before, encoded.ids[windows.firsts[w] : windows.lasts[w]], after, boundary])
        for w in chosen
    ]


class GenerativeRecognizer(Recognizer):
    """A trained generator. The score of a span is how sure the whole answer is: its tokens' mean
    probability (geometric)."""

    @classmethod
    def from_training(cls, model: Any, method: methods.Method, targets: Path) -> Self:
        """A model that was just trained; answers grow as long as in training."""
        predictor = super().from_training(model, method, targets)
        _, splits = read_columns(targets, ["labels"])
        predictor.settings["longest"] = int(np.diff(splits).max())
        return predictor

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Generator:
        """The model that was saved in a folder."""
        from wxb.training.backbones.generator import Generator

        return Generator.from_pretrained(
            folder, tokens=len(tokenizer), four_bit=settings["four_bit"]
        )

    @property
    def longest(self) -> int:
        """The most tokens of an answer."""
        longest: int = self.settings["longest"]
        return longest

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """How long answers may be."""
        return {"longest": self.longest}

    def predict_windows(
        self, encoded: Encoded, windows: Windows, chosen: Sequence[int], texts: Sequence[str]
    ) -> list[list[ScoredSpan]]:
        """Write the answers, read them, and find their mentions in the windows."""
        from wxb.training.batches import collate

        pad, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        items = [{"input_ids": p} for p in _prompts(encoded, windows, chosen, self.tokenizer)]
        device = next(self.model.parameters()).device
        batch = {k: v.to(device) for k, v in collate(items, pad, side="left").items()}
        ids, chances = self.model.write(**batch, longest=self.longest, end=end, pad=pad)
        found = []
        for window, answer, logs in zip(
            chosen, ids.cpu().numpy(), chances.cpu().numpy(), strict=True
        ):
            length = int(np.argmax(answer == end)) + 1 if end in answer else len(answer)
            written = self.tokenizer.backend_tokenizer.decode(
                answer[:length][answer[:length] != end].tolist(), skip_special_tokens=False
            )
            mentions = [m for m in answers.parse(written) if m[0] in self.types]
            text = texts[windows.rows[window]]
            first, last = _characters(encoded, windows, window, text)
            score = float(np.exp(logs[:length].mean()))
            spans = _moved(answers.locate(text[first:last], mentions), first)
            found.append([ScoredSpan(span, score) for span in spans])
        return found

    def merge_windows(
        self, encoded: Encoded, windows: Windows, found: Mapping[int, Any], text: str
    ) -> list[ScoredSpan]:
        """Of each window the mentions whose middle it decides on."""
        kept: list[ScoredSpan] = []
        for window, spans in found.items():
            row, begin, stop = (int(windows[at][window]) for at in (0, 3, 4))
            start, end = characters(encoded, row, begin, stop, text)
            kept += [one for one in spans if start <= (one.span.start + one.span.end) // 2 < end]
        return kept


class Method(methods.Method):
    """Answers of a decoder, which name what a window holds."""

    experiment: Generation
    Predictor = GenerativeRecognizer
    summarize = staticmethod(methods.summarize_tokens)

    def vocabulary(self) -> Any:
        """The tokenizer; with `encoding.special_tokens` every marker of an answer is a token."""
        if self.experiment.encoding.special_tokens:
            markers = [answers.BOUNDARY, answers.SEPARATOR, *map(answers.opening, self.labels)]
            self.tokenizer.backend_tokenizer.add_special_tokens(
                [AddedToken(marker, special=True, normalized=False) for marker in markers]
            )
        return self.tokenizer

    def align(
        self, path: Path, chunks: Iterable[Sequence[Record]]
    ) -> tuple[*Columns, dict[str, int]]:
        """The tokens of every window's answer, where each begins, and counts of gold spans.

        The answer names what the window holds whole. A span is kept when reading the answers finds
        it where it stands.
        """
        laid = partial(lay, types=self.labels, tokenizer=self.tokenizer)
        return encoding.aligned(path, chunks, self.tokenizer, self.experiment.encoding, laid)

    def dataset(
        self, features: Path, targets: Path, records: Sequence[Record]
    ) -> list[dict[str, NDArray[Any]]]:
        """One item a window: prompt and answer, with labels on the answer only."""
        encoded = read_encoded(features)
        windows = encoding.windows(encoded, self.tokenizer, self.experiment.encoding)
        columns, splits = read_columns(targets, self.TARGETS)
        prompts = _prompts(encoded, windows, range(len(windows.rows)), self.tokenizer)
        items = []
        for prompt, (start, end) in zip(prompts, pairwise(splits), strict=True):
            answer = columns["labels"][start:end]
            items.append(
                {
                    "input_ids": np.concatenate([prompt, answer]),
                    "labels": np.concatenate([np.full(len(prompt), IGNORED), answer]),
                }
            )
        return items

    def build(self, backbone: Path) -> Generator:
        """The model that training starts from; new embeddings are random."""
        from wxb.training.backbones.generator import Generator

        return Generator.to_learn(backbone, self.experiment.tuning, tokens=len(self.tokenizer))
