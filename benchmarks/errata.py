"""What the defects of the published series do to a score, measured one by one.

Each defect is put back, alone, into what the project has: the same test records, and the same
trained model where the defect is one of scoring or decoding. Where it is one of training, both
forms are trained from the same backbone on the same records, with the same seeds. docs/errata.md
tells what each defect is; the published forms stand here.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from tokenizers.decoders import ByteLevel
from torch import Tensor
from transformers import logging, set_seed

from wxb import tasks
from wxb.backbones import tuning
from wxb.backbones.tuning import noisy
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.files import read_json
from wxb.metrics.bootstrap import by_group, paired
from wxb.params import Params, load
from wxb.tasks.ner.generation import answers
from wxb.tasks.ner.metrics import counts, prf
from wxb.tasks.ner.predictor import Recognizer, ScoredSpan
from wxb.tasks.ner.spans import Span
from wxb.tasks.ner.tagging.bio import OUTSIDE, align, runs
from wxb.tasks.ner.tagging.method import TARGETS
from wxb.text.encoded import IGNORED
from wxb.text.tokenizers import encode, frame, ids_of
from wxb.text.tokenizers import load as load_tokenizer
from wxb.text.windows import over
from wxb.training.batches import collate
from wxb.training.trainer import fit

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130)  # a table is cut nowhere, whatever the terminal

LIMIT = 32  # tokens that a text is cut to
THRESHOLD = 0.5  # that inference applies and evaluation does not
NEFTUNE = 5.0  # alpha of the series

Item = dict[str, NDArray[Any]]
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
    texts, gold = [r.text for r in records], [r.spans or () for r in records]
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
    windows = over(encoded, tagger.tokenizer, max_length=tagger.max_length, stride=tagger.stride)
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
    texts, gold = [r.text for r in records], [r.spans or () for r in records]
    read = partial(spans_of, generator)
    asked = ask(generator, texts, label=f"{name}: prompt of training")
    right = counts(gold, [read(t, a, a.ids) for t, a in zip(texts, asked, strict=True)])

    other = ask(generator, texts, between="\n", label=f"{name}: other prompt")
    found = [read(t, a, a.ids) for t, a in zip(texts, other, strict=True)]
    note = "one line break more before the answer"
    yield Pair("inference prompt is not that of training", name, right, counts(gold, found), note)

    sliced = sliced_by_tokens(asked, generator.batch_size)
    found = [read(t, a, ids) for t, a, ids in zip(texts, asked, sliced, strict=True)]
    hit = sum(len(ids) > len(a.ids) for ids, a in zip(sliced, asked, strict=True))
    note = f"batches of {generator.batch_size} in the order of records;"
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
    room = generator.max_length - sum(map(len, frame(generator.tokenizer)))
    lengths = np.diff(encode(generator.tokenizer, [r.text for r in records]).splits)
    return [record for record, length in zip(records, lengths, strict=True) if length <= room]


def ask(generator: Any, texts: Sequence[str], *, between: str = "", label: str) -> list[Answer]:
    """The answers to texts that a window holds; training has nothing `between` text and answer."""
    tokenizer = generator.tokenizer
    encoded = encode(tokenizer, texts)
    before, after = frame(tokenizer)
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
    for chosen in np.split(order, range(generator.batch_size, len(order), generator.batch_size)):
        batch = collate([{"input_ids": prompts[row]} for row in chosen], pad, side="left")
        written, chances = generator.model.write(
            **batch, longest=generator.longest, end=end, pad=pad
        )
        for row, ids, logs in zip(chosen, written.numpy(), chances.numpy(), strict=True):
            length = int(np.argmax(ids == end)) + 1 if end in ids else len(ids)
            score = float(np.exp(logs[:length].mean()))
            found[int(row)] = Answer(prompts[row], ids[:length], score)
    console.print(f"[dim]{label}: {len(found)} answers")
    return [found[row] for row in range(len(texts))]


def spans_of(generator: Any, text: str, answer: Answer, ids: NDArray[np.integer]) -> list[Span]:
    """What `ids`, taken for the answer, say of a text."""
    if answer.score < generator.threshold:
        return []
    tokenizer = generator.tokenizer
    around = np.concatenate(frame(tokenizer)).tolist()
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
    first, *rest = record.spans or ()
    at, more = first.start + 1, len(answers.SEPARATOR)
    text = record.text[:at] + answers.SEPARATOR + record.text[at:]
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


# Training


def padded_to(length: int, outside: int, items: Sequence[Item], *, pad: int) -> dict[str, Tensor]:
    """A batch of that many columns, in which targets of padding are `outside`."""
    batch = collate(items, pad)
    fill = {"input_ids": pad, "attention_mask": 0} | dict.fromkeys(TARGETS, outside)
    short = batch["attention_mask"] == 0
    for name in TARGETS:
        batch[name] = batch[name].masked_fill(short, outside)
    more = length - short.shape[1]
    return {
        name: torch.nn.functional.pad(values, (0, more), value=fill[name])
        for name, values in batch.items()
    }


def over_the_prompt(item: Item) -> Item:
    """The item with its prompt among what is to be learnt; nothing precedes the first token."""
    labels = item["input_ids"].astype(item["labels"].dtype)
    return {**item, "labels": np.concatenate([[IGNORED], labels[1:]]).astype(labels.dtype)}


def noisy_by_padding(embeddings: Tensor, attention_mask: Tensor, alpha: float) -> Tensor:
    """NEFTune's noise with L the padded length, on padding as on tokens."""
    return noisy(embeddings, torch.ones_like(attention_mask), alpha)


class Form(NamedTuple):
    """One way of training; what is not given is as in the project."""

    batch: Callable[..., dict[str, Tensor]] = collate
    item: Callable[[Item], Item] | None = None
    noise: Callable[..., Tensor] | None = None
    alpha: float | None = None


def training_pairs(
    params: Params, records: Sequence[Record], names: Mapping[str, str], limit: int, seeds: int
) -> Iterator[Pair]:
    """Both forms of what is wrong in training; `names` are those of experiments, by method."""
    comparisons: list[tuple[str, str, Form, Form]] = []
    if name := names.get("tagging"):
        length = params.experiments[name].max_length
        right, wrong = (partial(padded_to, length, fill) for fill in (IGNORED, OUTSIDE))
        defect = "padding is labelled O"
        comparisons.append((defect, name, Form(batch=right), Form(batch=wrong)))
        defect = "NEFTune's noise by the padded length"
        by_row = Form(batch=right, alpha=NEFTUNE)
        by_padding = by_row._replace(noise=noisy_by_padding)
        comparisons.append((defect, name, by_row, by_padding))
    if name := names.get("generation"):
        defect = "loss over the prompt"
        comparisons.append((defect, name, Form(), Form(item=over_the_prompt)))
    texts, gold = [r.text for r in records], [r.spans or () for r in records]
    for defect, name, *forms in comparisons:
        tables = []
        for form in forms:
            for seed in range(params.seed, params.seed + seeds):
                predictor = trained(params, name, form, limit, seed)
                label = f"{defect}: seed {seed}"
                tables.append(counts(gold, above(0, predictor.candidates(texts, label=label))))
        right_of, published_of = tables[:seeds], tables[seeds:]
        each = ", ".join(
            f"{f1_of(p) - f1_of(r):+.3f}" for r, p in zip(right_of, published_of, strict=True)
        )
        note = f"trained on {limit} windows of text; difference with each seed: {each}"
        yield Pair(defect, name, sum(right_of), sum(published_of), note)  # type: ignore[arg-type]


def trained(params: Params, name: str, form: Form, limit: int, seed: int) -> Any:
    """Train an experiment anew, on its first `limit` windows, in one form."""
    experiment = params.experiments[name]
    if form.alpha:
        noisier = experiment.tuning.model_copy(update={"neftune_alpha": form.alpha})
        experiment = experiment.model_copy(update={"tuning": noisier})
    task = tasks.module(experiment.task, experiment.method)
    backbone, targets = Path("models", experiment.backbone), Path("data/targets", name)
    types = read_json(targets / "types.json")
    tokenizer = task.vocabulary(load_tokenizer(backbone), types, experiment)
    set_seed(seed)
    model = task.build(backbone, types, experiment, tokenizer)
    items = {}
    for split, size in (("train", limit), ("valid", max(1, limit // 8))):
        path = Path("data/clean", experiment.corpus, f"{split}.parquet")
        items[split] = task.dataset(
            Path("data/features", name, f"{split}.arrow"),
            targets / f"{split}.arrow",
            tokenizer,
            [record.text for record in clean.labelled(path)],
            experiment,
        )[:size]
    if form.item:
        items["train"] = [form.item(item) for item in items["train"]]
    noise: AbstractContextManager[Any] = nullcontext()
    if form.noise:
        noise = patch.object(tuning, "noisy", form.noise)
    log = redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, noise, log:
        fit(
            model,
            experiment.training,
            **items,
            collate=partial(form.batch, pad=tokenizer.pad_token_id),
            targets=task.TARGETS,
            figures=task.figures,
            summarize=task.summarize,
            best=task.BEST,
            seed=seed,
            checkpoints=Path(folder),
            label=f"{name}: seed {seed}",
        )
    return task.Predictor.of(model, tokenizer, types, experiment, targets / "train.arrow")


# The command


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments of one corpus")
    ] = None,
    records: Annotated[int | None, typer.Option(min=1, help="the first test records only")] = None,
    train_records: Annotated[
        int, typer.Option(min=8, help="windows of text to train both forms on")
    ] = 2000,
    seeds: Annotated[int, typer.Option(min=1, help="of each form, from that of params.yaml")] = 2,
    threads: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Put the defects of the published series back, one by one, and score both ways.

    By default with ner-encoder, ner-decoder and ner-generative.
    """
    torch.set_num_threads(threads)
    logging.set_verbosity_error()  # weights of pretraining that a tagger has no use for
    params = load()
    chosen = experiments or ["ner-encoder", "ner-decoder", "ner-generative"]
    corpora = {params.named("experiments", name).corpus for name in chosen}
    if len(corpora) > 1:
        raise typer.BadParameter(f"{', '.join(chosen)} have {len(corpora)} corpora; expected one")
    test = clean.labelled(Path("data/clean", corpora.pop(), "test.parquet"))[:records]
    pairs: list[Pair] = []
    first: dict[str, str] = {}  # of each method
    for name in chosen:
        experiment = params.experiments[name]
        first.setdefault(experiment.method, name)
        predictor = tasks.module(experiment.task, experiment.method).Predictor.load(
            Path("models", name)
        )
        measure, held = tagger_pairs, test
        if experiment.method == "generation":
            measure, held = generator_pairs, fitting(predictor, test)
        pairs += grouped(measure(name, predictor, held), held)
    marked = [record for record in test if record.spans]
    pairs += grouped([separator_pair(marked)], marked)
    pairs += grouped(training_pairs(params, test, first, train_records, seeds), test)
    console.print(table(pairs, resamples=params.resamples, seed=params.seed))
    for number, pair in enumerate(pairs, start=1):
        if pair.note:
            console.print(f"{number}  {pair.note}", highlight=False)
    spans = sum(len(record.spans or ()) for record in test)
    console.print(
        f"{len(test)} test records, {spans} gold spans; strict span F1; 95% intervals of"
        f" {params.resamples} paired resamples of groups of records, seed {params.seed}",
        highlight=False,
    )


def grouped(pairs: Iterable[Pair], records: Sequence[Record]) -> Iterator[Pair]:
    """Pairs whose counts are those of groups of records, which are resampled whole."""
    groups = [record.group for record in records]
    for pair in pairs:
        yield pair._replace(
            right=by_group(pair.right, groups), published=by_group(pair.published, groups)
        )


def table(pairs: Sequence[Pair], *, resamples: int, seed: int) -> Table:
    """One row a defect: F1 both ways, and what the published form adds to it."""
    made = Table("", "defect", "on", "right", "published", "difference (95% interval)")
    for number, pair in enumerate(pairs, start=1):
        difference = paired(pair.published, pair.right, resamples=resamples, seed=seed)
        made.add_row(
            str(number),
            pair.defect,
            pair.experiment,
            f"{f1_of(pair.right):.3f}",
            f"{f1_of(pair.published):.3f}",
            f"{difference.value:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})",
        )
    return made


def f1_of(table: NDArray[np.int64]) -> float:
    """F1 of counts (records, 3)."""
    return float(prf(table.sum(axis=0))[2])


if __name__ == "__main__":
    app()
