"""The defects of the published series in scoring and decoding: both ways on one trained model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers.decoders import ByteLevel

from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import encode, ids_of, special_tokens
from wxb.corpora.text.windows import over
from wxb.tasks.ner.generation import answers
from wxb.tasks.ner.metrics import counts, prf
from wxb.tasks.ner.predictor import Recognizer, ScoredSpan
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.bio import align, runs
from wxb.training.batches import collate

LIMIT = 32  # tokens that a text is cut to
THRESHOLD = 0.5  # that inference applies and evaluation does not

Spans = Sequence[Sequence[Span]]


class Pair(NamedTuple):
    """One defect measured: counts (records, 3) as of `wxb.tasks.ner.metrics.counts`, both ways."""

    defect: str
    experiment: str
    right: NDArray[np.int64]
    published: NDArray[np.int64]
    note: str


# Scoring and decoding of taggers


def tagger_pairs(name: str, tagger: Recognizer, records: Sequence[Record]) -> Iterator[Pair]:
    """The defects of scoring and decoding, on what a trained tagger says."""
    texts, gold = [r.input for r in records], [r.gold or () for r in records]
    scored = tagger.candidates(texts, label=f"{name}: whole texts")
    found = above(tagger.threshold, scored)
    right = counts(gold, found)

    by_token = [on_tokens(tagger, texts, spans) for spans in (gold, found)]
    yield Pair("tokens are scored, not characters", name, right, counts(*by_token), "")

    pieces = cut(tagger, texts)
    found_in_pieces = above(tagger.threshold, tagger.candidates(pieces, label=f"{name}: cut texts"))
    shorter = sum(len(piece) < len(text) for piece, text in zip(pieces, texts, strict=True))
    left = [what_is_left(spans, len(piece)) for spans, piece in zip(gold, pieces, strict=True)]
    yield Pair(
        "gold beyond the cut vanishes",
        name,
        counts(gold, found_in_pieces),
        counts(left, found_in_pieces),
        f"texts cut to {LIMIT} tokens: {shorter} of {len(texts)} are longer;"
        f" {sum(map(len, gold)) - sum(map(len, left))} gold spans vanish",
    )

    used = above(THRESHOLD, scored)
    yield Pair(
        "threshold at inference only",
        name,
        counts(gold, used),
        counts(gold, above(0, scored)),
        f"right: what is kept at {THRESHOLD}; published: what is reported, without a threshold",
    )

    if not isinstance(tagger.tokenizer.backend_tokenizer.decoder, ByteLevel):
        return  # BERT's tokens hold no space
    led = [with_lead(*one) for one in zip(texts, found, strict=True)]
    moved = sum(spans != kept for spans, kept in zip(led, found, strict=True))
    yield Pair(
        "space before a mention is part of it",
        name,
        right,
        counts(gold, led),
        f"in {moved} of {len(texts)} texts a space is masked as well",
    )


def above(threshold: float, scored: Sequence[Sequence[ScoredSpan]]) -> list[list[Span]]:
    """The spans whose score reaches the threshold."""
    return [[span for span, score in spans if score >= threshold] for spans in scored]


def on_tokens(tagger: Recognizer, texts: Sequence[str], spans: Spans) -> list[list[Span]]:
    """Spans as the tokens that they touch, which is what BIO tags give back."""
    encoded = encode(tagger.tokenizer, texts)
    windows = over(
        encoded,
        tagger.tokenizer,
        max_length=tagger.settings["max_length"],
        stride=tagger.settings["stride"],
    )
    tags = align(encoded, windows, spans, tagger.types)[0].tags
    return [
        [Span(first, last, tagger.types[kind]) for first, last, kind in runs(row.tolist())]
        for row in np.split(tags, encoded.splits[1:-1])
    ]


def cut(tagger: Recognizer, texts: Sequence[str]) -> list[str]:
    """Texts as far as their first LIMIT tokens reach."""
    encoded = encode(tagger.tokenizer, texts)
    lasts = np.minimum(encoded.splits[:-1] + LIMIT, encoded.splits[1:]) - 1
    lengths = np.diff(encoded.splits)
    return [
        text if length <= LIMIT else text[: encoded.ends[last]]
        for text, length, last in zip(texts, lengths, lasts, strict=True)
    ]


def what_is_left(spans: Sequence[Span], length: int) -> list[Span]:
    """Gold as labels of a cut text have it: none beyond the cut, and a part of what it hits."""
    return [Span(s.start, min(s.end, length), s.type) for s in spans if s.start < length]


def with_lead(text: str, spans: Sequence[Span]) -> list[Span]:
    """Spans from the space that byte-level tokenizers count as part of the word after it."""
    return [Span(s.start - text[: s.start].endswith(" "), s.end, s.type) for s in spans]


# Prompts and decoding of generators


class Answer(NamedTuple):
    """A prompt, the tokens written after it (the end of text among them), and how sure they are."""

    prompt: NDArray[np.int32]
    ids: NDArray[np.int32]
    score: float


def generator_pairs(name: str, generator: Any, records: Sequence[Record]) -> Iterator[Pair]:
    """The defects of prompts and of reading answers, on what a trained generator writes."""
    texts, gold = [r.input for r in records], [r.gold or () for r in records]
    read = partial(spans_of, generator)
    asked = ask(generator, texts, label=f"{name}: prompt of training")
    right = counts(gold, [read(t, a, a.ids) for t, a in zip(texts, asked, strict=True)])

    other = ask(generator, texts, between="\n", label=f"{name}: other prompt")
    found = [read(t, a, a.ids) for t, a in zip(texts, other, strict=True)]
    note = "one line break more before the answer"
    yield Pair("inference prompt is not that of training", name, right, counts(gold, found), note)

    sliced = sliced_by_tokens(asked, generator.prediction.batch_size)
    found = [read(t, a, ids) for t, a, ids in zip(texts, asked, sliced, strict=True)]
    hit = sum(len(ids) > len(a.ids) for ids, a in zip(sliced, asked, strict=True))
    note = f"batches of {generator.prediction.batch_size} in the order of records;"
    note += f" {hit} of {len(texts)} answers begin inside the prompt"
    yield Pair("padded outputs are sliced by real tokens", name, right, counts(gold, found), note)

    limit = generator.longest // 2
    found = [read(t, a, a.ids[:limit]) for t, a in zip(texts, asked, strict=True)]
    hit = sum(len(a.ids) > limit for a in asked)
    note = f"{limit} tokens, where answers in training have up to {generator.longest};"
    note += f" {hit} of {len(texts)} answers are longer"
    yield Pair("max_new_tokens is too low", name, right, counts(gold, found), note)


def fitting(generator: Recognizer, records: Sequence[Record]) -> list[Record]:
    """The records that one window holds: each then has one prompt and one answer."""
    room = generator.settings["max_length"] - sum(map(len, special_tokens(generator.tokenizer)))
    lengths = np.diff(encode(generator.tokenizer, [r.input for r in records]).splits)
    return [record for record, length in zip(records, lengths, strict=True) if length <= room]


def ask(generator: Any, texts: Sequence[str], *, between: str = "", label: str) -> list[Answer]:
    """The answers to texts that a window holds; training has nothing `between` text and answer."""
    tokenizer = generator.tokenizer
    encoded = encode(tokenizer, texts)
    before, after = special_tokens(tokenizer)
    middle = np.concatenate(
        [*ids_of(tokenizer, [between]), *ids_of(tokenizer, [answers.BOUNDARY], special=True)]
    )
    prompts = [
        np.concatenate([before, ids, after, middle]).astype(np.int32)
        for ids in np.split(encoded.ids, encoded.splits[1:-1])
    ]
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    found: dict[int, Answer] = {}
    order = np.argsort([len(prompt) for prompt in prompts], kind="stable")
    for chosen in np.split(
        order, range(generator.prediction.batch_size, len(order), generator.prediction.batch_size)
    ):
        batch = collate([{"input_ids": prompts[row]} for row in chosen], pad, side="left")
        written, chances = generator.model.write(
            **batch, longest=generator.longest, end=end, pad=pad
        )
        for row, ids, logs in zip(chosen, written.numpy(), chances.numpy(), strict=True):
            length = int(np.argmax(ids == end)) + 1 if end in ids else len(ids)
            score = float(np.exp(logs[:length].mean()))
            found[int(row)] = Answer(prompts[row], ids[:length], score)
    print(f"{label}: {len(found)} answers")
    return [found[row] for row in range(len(texts))]


def spans_of(generator: Any, text: str, answer: Answer, ids: NDArray[np.integer]) -> list[Span]:
    """What `ids`, taken for the answer, say of a text."""
    if answer.score < generator.threshold:
        return []
    tokenizer = generator.tokenizer
    around = np.concatenate(special_tokens(tokenizer)).tolist()
    silent = {tokenizer.pad_token_id, tokenizer.eos_token_id, *around}
    written = tokenizer.backend_tokenizer.decode(
        [int(i) for i in ids if int(i) not in silent], skip_special_tokens=False
    )
    mentions = [m for m in answers.parse(written) if m[0] in generator.types]
    return answers.locate(text, mentions)


def sliced_by_tokens(asked: Sequence[Answer], size: int) -> list[NDArray[np.integer]]:
    """Left-padded outputs, in batches, without as many columns as the prompt has real tokens."""
    sliced = []
    for start in range(0, len(asked), size):
        batch = asked[start : start + size]
        longest = max(len(answer.prompt) for answer in batch)
        for prompt, ids, _ in batch:
            # `longest - len(prompt)` columns of padding stand before the prompt.
            kept = max(0, 2 * len(prompt) - longest)
            sliced.append(np.concatenate([prompt[kept:], ids]))
    return sliced


def separator_pair(records: Sequence[Record]) -> Pair:
    """What a model that writes every answer right would score; no model is needed.

    Each record has a span at least.
    """
    told = [with_separator(record) for record in records]
    gold = [spans for _, spans in told]
    escaped, plain = [], []
    for text, spans in told:
        escaped.append(answers.locate(text, answers.parse("".join(answers.pieces(text, spans)))))
        plain.append(answers.locate(text, split_plainly(written_plainly(text, spans))))
    return Pair(
        "separator in a mention is not escaped",
        "perfect answers",
        counts(gold, escaped),
        counts(gold, plain),
        f"a mention of each record made to hold `{answers.SEPARATOR}`",
    )


def with_separator(record: Record) -> tuple[str, list[Span]]:
    """A record whose first mention has a separator after its first character."""
    first, *rest = record.gold or ()
    at, more = first.start + 1, len(answers.SEPARATOR)
    text = record.input[:at] + answers.SEPARATOR + record.input[at:]
    return text, [
        Span(first.start, first.end + more, first.type),
        *(Span(s.start + more, s.end + more, s.type) for s in rest),
    ]


def written_plainly(text: str, spans: Sequence[Span]) -> str:
    """The answer as the series writes it: nothing is escaped."""
    return answers.SEPARATOR.join(f"{s.type}{answers.FIELD}{text[s.start : s.end]}" for s in spans)


def split_plainly(answer: str) -> list[answers.Mention]:
    """The answer as the series reads it."""
    parts = (item.partition(answers.FIELD) for item in answer.split(answers.SEPARATOR))
    return [(kind, mention.strip()) for kind, field, mention in parts if field and mention.strip()]


def f1_of(table: NDArray[np.int64]) -> float:
    """F1 of counts (records, 3)."""
    return float(prf(table.sum(axis=0))[2])
