"""Named entities by generation: the model answers a text with `TYPE|mention;;TYPE|mention`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt
from tokenizers import AddedToken

from wxb.core.params import experiments
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, Encoded, join_rows, read_columns, read_encoded
from wxb.corpora.text.templates import OWN, Template
from wxb.corpora.text.tokenizers import special_tokens, token_ids
from wxb.corpora.text.windows import Windows, character_range
from wxb.tasks.methods import GeneratorMethod, GeneratorPredictor, LazyItems
from wxb.tasks.ner.models import answers
from wxb.tasks.ner.models.predictor import Recognizer, ScoredSpan, WindowedTexts
from wxb.tasks.ner.models.windowed import SpanAlignment, Status, WindowedMethod
from wxb.tasks.ner.params import Encoding, Experiment
from wxb.tasks.ner.record import Span

Example = tuple[str, str]  # a text and its answer


class GenerationEncoding(Encoding, experiments.PromptEncoding):
    """Windows of texts, and the form of prompts; without an `instruction`, the text and `=>`."""

    special_tokens: bool = False  # for markers of answers


class GenerationPrediction(experiments.Prediction):
    """Settings of generation."""

    batch_size: PositiveInt = 64


class GenerationExperiment(Experiment, experiments.Prompted):
    """An experiment that generates answers."""

    is_slow: ClassVar[bool] = True

    encoding: GenerationEncoding
    prediction: GenerationPrediction = GenerationPrediction()


def _characters(encoded: Encoded, windows: Windows, window: int, text: str) -> tuple[int, int]:
    """The characters [start, end) that a window reads."""
    row, first, last = (int(column[window]) for column in windows[:3])
    return character_range(encoded, row, first, last, text)


def _shifted(spans: Iterable[Span], offset: int) -> list[Span]:
    return [Span(span.start + offset, span.end + offset, span.type) for span in spans]


def _end_id(tokenizer: Any, instruction: str | None) -> int:
    """The token that ends an answer: the end of text, or with an instruction that of a message."""
    if instruction is None:
        return cast("int", tokenizer.eos_token_id)
    return Template.add(tokenizer, OWN).end_ids[0]


def _answer_ids(
    tokenizer: Any, texts: Sequence[str], spans: Sequence[Sequence[Span]], end: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The concatenated tokens of all answers, each with the token `end`, and their row splits.

    Tokenizes all markers in one call and all mentions in another.
    """
    parts = list(map(answers.answer_parts, texts, spans))
    markers = sorted({piece for row in parts for piece in (*row[0::3], *row[2::3])})
    marker_ids = dict(zip(markers, token_ids(tokenizer, markers, parse_special=True), strict=True))
    mention_ids = iter(token_ids(tokenizer, [piece for row in parts for piece in row[1::3]]))
    rows = [
        [next(mention_ids) if i % 3 == 1 else marker_ids[piece] for i, piece in enumerate(row)]
        for row in parts
    ]
    ids, row_splits = join_rows([np.concatenate([*row, [end]]) for row in rows], np.int32)
    return ids.astype(np.int32, copy=False), row_splits


def _prompt_builder(
    inputs: WindowedTexts, tokenizer: Any, instruction: str | None, examples: Sequence[Example] = ()
) -> Callable[[int], NDArray[np.int32]]:
    """A function from a window's index to the ids of its prompt, with special tokens.

    It is the text and `=>`, or with an instruction a conversation in the tokenizer's chat template:
    the instruction with the first text, the examples' texts with their answers, then the text.
    """
    texts, encoded, windows = inputs
    if instruction is None:
        before, after = special_tokens(tokenizer)
        boundary = token_ids(tokenizer, [answers.BOUNDARY], parse_special=True)[0]

        def bare(window: int) -> NDArray[np.int32]:
            tokens = encoded.ids[windows.reads_from[window] : windows.reads_to[window]]
            return np.concatenate([before, tokens, after, boundary])

        return bare
    template = Template.add(tokenizer, OWN)

    def prompt(window: int) -> NDArray[np.int32]:
        text = texts[windows.rows[window]]
        first, last = _characters(encoded, windows, window, text)
        return template.prompt(instruction, [*examples, (text[first:last],)])

    return prompt


class GenerativeRecognizer(GeneratorPredictor, Recognizer):
    """A generator. All spans of an answer have its score: the geometric mean over its tokens."""

    def predict_windows(self, inputs: WindowedTexts, indices: Sequence[int]) -> list[Any]:
        """For each window, the spans of known types in its answer, by offsets in the whole text.

        The middle of a span is in the part of the text that the window predicts.
        """
        texts, encoded, windows = inputs
        instruction, examples = (self.settings.get(name) for name in ("instruction", "examples"))
        pad, end = self.tokenizer.pad_token_id, _end_id(self.tokenizer, instruction)
        prompts = map(_prompt_builder(inputs, self.tokenizer, instruction, examples or ()), indices)
        batch = self.batch([{"input_ids": prompt} for prompt in prompts], side="left")
        longest = self.settings["longest"]
        ids, log_probs = self.model.generate(**batch, max_new_tokens=longest, eos=end, pad=pad)
        outputs = []
        rows = zip(indices, ids.cpu().numpy(), log_probs.cpu().numpy(), strict=True)
        for window, answer, logs in rows:
            length = int(np.argmax(answer == end)) + 1 if end in answer else len(answer)
            answer_text = self.tokenizer.backend_tokenizer.decode(
                answer[:length][answer[:length] != end].tolist(), skip_special_tokens=False
            )
            mentions = [m for m in answers.parse(answer_text) if m[0] in self.types]
            row, read, read_to, predict, predict_to = (int(column[window]) for column in windows)
            first, last = character_range(encoded, row, read, read_to, texts[row])
            begin, stop = character_range(encoded, row, predict, predict_to, texts[row])
            score = float(np.exp(logs[:length].mean()))
            spans = _shifted(answers.locate(texts[row][first:last], mentions), first)
            own = (span for span in spans if begin <= (span.start + span.end) // 2 < stop)
            outputs.append([ScoredSpan(span, score) for span in own])
        return outputs

    def calibrate(self, records: Sequence[Record], *, caption: str) -> None:
        """Set `examples` to the first `shots` records with spans; the others set the threshold."""
        examples = [record for record in records if record.gold][: self.settings.get("shots", 0)]
        if examples:
            pairs = [(r.input, answers.answer_parts(r.input, sorted(r.gold))) for r in examples]
            self.settings["examples"] = [(text, "".join(parts)) for text, parts in pairs]
        super().calibrate([r for r in records if r not in examples], caption=caption)


class GenerationMethod(WindowedMethod, GeneratorMethod):
    """A decoder that generates an answer for each window."""

    experiment: GenerationExperiment
    PREDICTOR = GenerativeRecognizer

    def __post_init__(self) -> None:
        """With `encoding.special_tokens`, add a token for each marker to the tokenizer in place."""
        super().__post_init__()
        if self.experiment.encoding.special_tokens:
            markers = [answers.BOUNDARY, answers.SEPARATOR, *map(answers.opening, self.labels)]
            tokens = [AddedToken(text, special=True, normalized=False) for text in markers]
            self.tokenizer.backend_tokenizer.add_special_tokens(tokens)

    def align(self, encoded: Encoded, windows: Windows, records: Sequence[Record]) -> SpanAlignment:
        """The tokens of the windows' answers, where each begins, and the status of gold spans.

        An answer names the gold spans of known types that its window holds whole. A span counts as
        kept if `locate` returns its own offsets for every answer that names it, else as repaired;
        as split if no window holds it, and as lost if its type is unknown.
        """
        types, texts, answer_spans = self.labels, [], []
        statuses = [
            {span: Status.SPLIT if span.type in types else Status.LOST for span in record.gold}
            for record in records
        ]
        for window, row in enumerate(windows.rows):
            record = records[row]
            start, end = _characters(encoded, windows, window, record.input)
            text = record.input[start:end]
            whole = (s for s in record.gold if start <= s.start and s.end <= end)
            spans = _shifted(sorted(s for s in whole if s.type in types), -start)
            answer = "".join(answers.answer_parts(text, spans))
            located = _shifted(answers.locate(text, answers.parse(answer)), start)
            for span in _shifted(spans, start):
                is_kept = span in located and statuses[row][span] != Status.REPAIRED
                statuses[row][span] = Status.KEPT if is_kept else Status.REPAIRED
            texts.append(text)
            answer_spans.append(spans)
        end = _end_id(self.tokenizer, self.experiment.encoding.instruction)
        ids, row_splits = _answer_ids(self.tokenizer, texts, answer_spans, end)
        flat = [status for by_span in statuses for status in by_span.values()]
        return {"labels": ids}, row_splits, np.array(flat, np.int8)

    def items(self, features: Path, targets: Path, records: Iterable[Record]) -> LazyItems:
        """One item per window; reads `records` only for an instruction. Prompts have no loss."""
        encoded = read_encoded(features)
        windows = self.windows(encoded)
        columns, row_splits = read_columns(targets, self.TARGETS)
        instruction = self.experiment.encoding.instruction
        texts = [record.input for record in records] if instruction else []
        build = _prompt_builder(WindowedTexts(texts, encoded, windows), self.tokenizer, instruction)

        def item(window: int) -> dict[str, NDArray[Any]]:
            prompt = build(window)
            answer = columns["labels"][row_splits[window] : row_splits[window + 1]]
            return {
                "input_ids": np.concatenate([prompt, answer]),
                "labels": np.concatenate([np.full(len(prompt), IGNORED), answer]),
            }

        return LazyItems(range(len(windows.rows)), item)

    def predictor_settings(self, targets: Path) -> dict[str, Any]:
        """Settings of windowed methods; if there is an instruction, also it and the `shots`."""
        encoding = self.experiment.encoding
        prompt = {"instruction": encoding.instruction, "shots": encoding.shots}
        return {**super().predictor_settings(targets), **(prompt if encoding.instruction else {})}

    def model_settings(self, targets: Path) -> dict[str, Any]:
        """`longest`: the tokens of the longest training answer; generated ones are no longer."""
        _, row_splits = read_columns(targets, ["labels"])
        return {"longest": int(np.diff(row_splits).max())}
