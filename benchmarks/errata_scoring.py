"""Defects of the published series in scoring and decoding: both forms with one trained model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers.decoders import ByteLevel

from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import encode, special_tokens, token_ids
from wxb.corpora.text.windows import text_windows
from wxb.metrics.intervals import Sums
from wxb.tasks.ner.metrics import Scorer, counts
from wxb.tasks.ner.models import answers
from wxb.tasks.ner.models.bio import align, decode_tags
from wxb.tasks.ner.models.predictor import Recognizer, ScoredSpan
from wxb.tasks.ner.record import Span
from wxb.training.batches import collate

LIMIT = 32  # tokens of truncated texts
THRESHOLD = 0.5  # applied in inference, but not in evaluation

Spans = Sequence[Sequence[Span]]


class Pair(NamedTuple):
    """The numbers of spans (records,) of both forms of a defect."""

    defect: str
    experiment: str
    correct: Sums
    published: Sums
    note: str


# Scoring and decoding of taggers


def tagger_pairs(name: str, tagger: Recognizer, records: Sequence[Record]) -> Iterator[Pair]:
    """Measure the defects of scoring and decoding on the predictions of a trained tagger."""
    texts, gold = [r.input for r in records], [r.gold or () for r in records]
    scored = tagger.scored_spans(texts, caption=f"{name}: full texts")
    predicted = above(tagger.threshold, scored)
    right = counts(gold, predicted)

    by_token = [on_tokens(tagger, texts, spans) for spans in (gold, predicted)]
    yield Pair("tokens are scored, not characters", name, right, counts(*by_token), "")

    short_texts = truncate(tagger, texts)
    scored_short = tagger.scored_spans(short_texts, caption=f"{name}: truncated texts")
    predicted_short = above(tagger.threshold, scored_short)
    changed = sum(len(s) < len(text) for s, text in zip(short_texts, texts, strict=True))
    short_gold = [
        truncate_spans(spans, len(short)) for spans, short in zip(gold, short_texts, strict=True)
    ]
    yield Pair(
        "gold beyond the cut vanishes",
        name,
        counts(gold, predicted_short),
        counts(short_gold, predicted_short),
        f"texts truncated to {LIMIT} tokens: {changed} of {len(texts)} are longer;"
        f" {sum(map(len, gold)) - sum(map(len, short_gold))} gold spans vanish",
    )

    reliable = above(THRESHOLD, scored)
    yield Pair(
        "threshold at inference only",
        name,
        counts(gold, reliable),
        counts(gold, above(0, scored)),
        f"correct: scored with the threshold {THRESHOLD}; published: scored without",
    )

    if not isinstance(tagger.tokenizer.backend_tokenizer.decoder, ByteLevel):
        return  # BERT's tokens have no space
    extended = [with_space(*pair) for pair in zip(texts, predicted, strict=True)]
    changed = sum(spans != own for spans, own in zip(extended, predicted, strict=True))
    yield Pair(
        "space before a mention is part of it",
        name,
        right,
        counts(gold, extended),
        f"in {changed} of {len(texts)} texts a space is masked too",
    )


def above(threshold: float, scored: Sequence[Sequence[ScoredSpan]]) -> list[list[Span]]:
    """The spans with at least this score."""
    return [[span for span, score in spans if score >= threshold] for spans in scored]


def on_tokens(tagger: Recognizer, texts: Sequence[str], spans: Spans) -> list[list[Span]]:
    """Spans as indices of the tokens that they overlap, as decoded from BIO tags."""
    encoded = encode(tagger.tokenizer, texts)
    windows = text_windows(
        encoded,
        tagger.tokenizer,
        max_length=tagger.settings["max_length"],
        stride=tagger.settings["stride"],
    )
    tags = align(encoded, windows, spans, tagger.types)[0].tags
    return [
        [Span(first, last, tagger.types[kind]) for first, last, kind in decode_tags(row.tolist())]
        for row in np.split(tags, encoded.row_splits[1:-1])
    ]


def truncate(tagger: Recognizer, texts: Sequence[str]) -> list[str]:
    """Texts truncated to their first LIMIT tokens."""
    encoded = encode(tagger.tokenizer, texts)
    lasts = np.minimum(encoded.row_splits[:-1] + LIMIT, encoded.row_splits[1:]) - 1
    lengths = np.diff(encoded.row_splits)
    return [
        text if length <= LIMIT else text[: encoded.ends[last]]
        for text, length, last in zip(texts, lengths, lasts, strict=True)
    ]


def truncate_spans(spans: Sequence[Span], length: int) -> list[Span]:
    """The spans of a truncated text; the last one may be shorter."""
    return [Span(s.start, min(s.end, length), s.type) for s in spans if s.start < length]


def with_space(text: str, spans: Sequence[Span]) -> list[Span]:
    """Spans with the space before them, which is in the first token of byte-level tokenizers."""
    return [Span(s.start - text[: s.start].endswith(" "), s.end, s.type) for s in spans]


# Prompts and decoding of generators


class Answer(NamedTuple):
    """A prompt, the tokens generated after it, including the end, and their score."""

    prompt: NDArray[np.int32]
    ids: NDArray[np.int32]
    score: float


def generator_pairs(name: str, generator: Any, records: Sequence[Record]) -> Iterator[Pair]:
    """Measure the defects of prompts and of parsing, on the answers of a trained generator."""
    texts, gold = [r.input for r in records], [r.gold or () for r in records]
    read = partial(spans_of, generator)
    training_answers = answer_texts(generator, texts, label=f"{name}: prompt of training")
    right = counts(gold, [read(t, a, a.ids) for t, a in zip(texts, training_answers, strict=True)])

    other_answers = answer_texts(generator, texts, between="\n", label=f"{name}: another prompt")
    predicted = [read(t, a, a.ids) for t, a in zip(texts, other_answers, strict=True)]
    note = "an additional line break before the answer"
    yield Pair(
        "inference prompt is not that of training", name, right, counts(gold, predicted), note
    )

    sliced = slice_by_tokens(training_answers, generator.prediction.batch_size)
    predicted = [read(t, a, ids) for t, a, ids in zip(texts, training_answers, sliced, strict=True)]
    hit = sum(len(ids) > len(a.ids) for ids, a in zip(sliced, training_answers, strict=True))
    note = f"batches of {generator.prediction.batch_size} in the order of records;"
    note += f" {hit} of {len(texts)} answers begin inside the prompt"
    yield Pair(
        "padded outputs are sliced by real tokens", name, right, counts(gold, predicted), note
    )

    limit = generator.settings["longest"] // 2
    predicted = [read(t, a, a.ids[:limit]) for t, a in zip(texts, training_answers, strict=True)]
    hit = sum(len(a.ids) > limit for a in training_answers)
    note = f"{limit} tokens; answers in training have up to {generator.settings['longest']};"
    note += f" {hit} of {len(texts)} answers are longer"
    yield Pair("max_new_tokens is too low", name, right, counts(gold, predicted), note)


def single_window_records(generator: Recognizer, records: Sequence[Record]) -> list[Record]:
    """The records that fit into one window, with one prompt and one answer each."""
    room = generator.settings["max_length"] - sum(map(len, special_tokens(generator.tokenizer)))
    lengths = np.diff(encode(generator.tokenizer, [r.input for r in records]).row_splits)
    return [record for record, length in zip(records, lengths, strict=True) if length <= room]


def answer_texts(
    generator: Any, texts: Sequence[str], *, between: str = "", label: str
) -> list[Answer]:
    """Generate the answers to texts of one window; `between` is inserted after each text."""
    tokenizer = generator.tokenizer
    encoded = encode(tokenizer, texts)
    before, after = special_tokens(tokenizer)
    boundary = token_ids(tokenizer, [answers.BOUNDARY], parse_special=True)
    middle = np.concatenate([*token_ids(tokenizer, [between]), *boundary])
    prompts = [
        np.concatenate([before, ids, after, middle]).astype(np.int32)
        for ids in np.split(encoded.ids, encoded.row_splits[1:-1])
    ]
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    by_row: dict[int, Answer] = {}
    order = np.argsort([len(prompt) for prompt in prompts], kind="stable")
    for rows in np.split(
        order, range(generator.prediction.batch_size, len(order), generator.prediction.batch_size)
    ):
        batch = collate([{"input_ids": prompts[row]} for row in rows], pad, side="left")
        tokens, log_probs = generator.model.generate(
            **batch, max_new_tokens=generator.settings["longest"], eos=end, pad=pad
        )
        for row, ids, logs in zip(rows, tokens.numpy(), log_probs.numpy(), strict=True):
            length = int(np.argmax(ids == end)) + 1 if end in ids else len(ids)
            score = float(np.exp(logs[:length].mean()))
            by_row[int(row)] = Answer(prompts[row], ids[:length], score)
    print(f"{label}: {len(by_row)} answers")
    return [by_row[row] for row in range(len(texts))]


def spans_of(generator: Any, text: str, answer: Answer, ids: NDArray[np.integer]) -> list[Span]:
    """The spans of a text that an answer with these `ids` names."""
    if answer.score < generator.threshold:
        return []
    tokenizer = generator.tokenizer
    special = np.concatenate(special_tokens(tokenizer)).tolist()
    skipped = {tokenizer.pad_token_id, tokenizer.eos_token_id, *special}
    answer_text = tokenizer.backend_tokenizer.decode(
        [int(i) for i in ids if int(i) not in skipped], skip_special_tokens=False
    )
    mentions = [m for m in answers.parse(answer_text) if m[0] in generator.types]
    return answers.locate(text, mentions)


def slice_by_tokens(batched: Sequence[Answer], size: int) -> list[NDArray[np.integer]]:
    """Left-padded outputs of batches, without as many columns as the prompt has tokens."""
    sliced = []
    for start in range(0, len(batched), size):
        batch = batched[start : start + size]
        longest = max(len(answer.prompt) for answer in batch)
        for prompt, ids, _ in batch:
            # `longest - len(prompt)` columns of padding are before the prompt.
            start_of_rest = max(0, 2 * len(prompt) - longest)
            sliced.append(np.concatenate([prompt[start_of_rest:], ids]))
    return sliced


def separator_pair(records: Sequence[Record]) -> Pair:
    """Measure the defect of separators on perfect answers, without a model.

    Each record has at least one span.
    """
    changed = [with_separator(record) for record in records]
    gold = [spans for _, spans in changed]
    escaped, plain = [], []
    for text, spans in changed:
        escaped.append(
            answers.locate(text, answers.parse("".join(answers.answer_parts(text, spans))))
        )
        plain.append(answers.locate(text, parse_unescaped(join_unescaped(text, spans))))
    return Pair(
        "separator in a mention is not escaped",
        "perfect answers",
        counts(gold, escaped),
        counts(gold, plain),
        f"a mention of each record changed to contain `{answers.SEPARATOR}`",
    )


def with_separator(record: Record) -> tuple[str, list[Span]]:
    """Text and spans of a record, with a separator inserted into its first mention."""
    first, *rest = record.gold or ()
    position, length = first.start + 1, len(answers.SEPARATOR)
    text = record.input[:position] + answers.SEPARATOR + record.input[position:]
    return text, [
        Span(first.start, first.end + length, first.type),
        *(Span(s.start + length, s.end + length, s.type) for s in rest),
    ]


def join_unescaped(text: str, spans: Sequence[Span]) -> str:
    """The answer for spans in the published form, without escapes."""
    return answers.SEPARATOR.join(f"{s.type}{answers.FIELD}{text[s.start : s.end]}" for s in spans)


def parse_unescaped(answer: str) -> list[answers.Mention]:
    """The mentions of an answer in the published form."""
    parts = (item.partition(answers.FIELD) for item in answer.split(answers.SEPARATOR))
    return [(kind, mention.strip()) for kind, field, mention in parts if field and mention.strip()]


def f1_of(counts: Sums) -> float:
    """F1 of numbers of spans (records,)."""
    sums = {name: values.sum(axis=0) for name, values in counts.items()}
    return float(Scorer().scores(sums)["f1"])
