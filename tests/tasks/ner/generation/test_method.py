"""Writing entities: what is taught is what is asked for and read back, down to the token ids."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

from wxb.core.files import read_json
from wxb.core.params.experiments import Tuning
from wxb.core.params.training import Training
from wxb.core.paths import SETTINGS
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, read_columns, write_columns, write_encoded
from wxb.corpora.text.tokenizers import encode, load, train
from wxb.corpora.text.windows import characters, over
from wxb.tasks.ner.generation import answers, method
from wxb.tasks.ner.generation.method import Method
from wxb.tasks.ner.params import Generation
from wxb.tasks.ner.predictor import ScoredSpan
from wxb.tasks.ner.record.alignment import Status
from wxb.tasks.ner.record.spans import Span
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.batches import collate

ROOT = Path(__file__).parents[4]
TYPES = ["AGE", "NAME"]
MAX_LENGTH, STRIDE = 32, 12


def record(text, *mentions):
    """A record whose gold is the next stretch of each mention, `value/TYPE`."""
    spans, at = [], 0
    for mention in mentions:
        value, kind = mention.rsplit("/", 1)
        at = text.index(value, at)
        spans.append(Span(at, at + len(value), kind))
        at += len(value)
    return Record(id=text, input=text, gold=tuple(spans), language=None, group="")


RECORDS = [
    record("Ann is 9.", "Ann/NAME", "9/AGE"),
    record("No one is here."),
    record("  Zoë\tMüller, 34\r\n ", "Zoë\tMüller/NAME", "34/AGE"),
    record("Bob saw Bob, 12", "Bob/NAME", "Bob/NAME", "12/AGE"),
    record("李明今年三十岁。", "李明/NAME", "三十/AGE"),
    record("👨‍👩‍👧 is Eve;; A|B\\C", "Eve/NAME", "A|B\\C/NAME"),
]
# What looks like an answer, or like a token of one, is text where it is text.
TRICKS = [
    record("NAME|Ann;;AGE|9=>", "Ann/NAME", "9/AGE"),
    record("</s><s><pad> ;; =>AGE|Ann", "Ann/NAME"),
    record("It is </s>=> now", "</s>=>/NAME"),
]
TEXTS = [r.input for r in RECORDS]
LONG = record("Ann 5 Dora 6 " * 20, *["Ann/NAME", "5/AGE", "Dora/NAME", "6/AGE"] * 20)

each_vocabulary = pytest.mark.parametrize("special", [True, False], ids=["special", "plain"])


def experiment(special):
    return Generation(
        study="s",
        corpus="c",
        task="ner",
        method="generation",
        backbone="decoder",
        architecture="wxb/models/llama.py",
        encoding={"max_length": MAX_LENGTH, "stride": STRIDE, "special_tokens": special},
        model={},
        prediction={"batch_size": 4},
        tuning=Tuning(),
        training=Training(epochs=1, batch_size=4, learning_rate=1e-3),
    )


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A folder with a small LLaMA and its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "decoder"
    tokenizer = train("byte-level-bpe", 300, TEXTS)
    tokenizer.save_pretrained(folder)
    set_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def vocabulary(backbone, special):
    return Method(experiment(special), TYPES, load(backbone)).vocabulary()


def aligned(backbone, special, records, folder):
    """Features and targets as the stages write them; the tokenizer, and the statuses of gold."""
    encoded, windows = read(backbone, records)
    write_encoded(folder / "features.arrow", encoded)
    tokenizer = vocabulary(backbone, special)
    columns, splits, statuses = method.lay(encoded, windows, records, TYPES, tokenizer)
    write_columns(folder / "targets.arrow", columns, splits)
    each = iter(map(Status, statuses))
    by_record = [[next(each) for _ in one.gold] for one in records]
    assert next(each, None) is None
    return tokenizer, by_record


def read(backbone, records):
    """The tokens of the texts, and their windows."""
    tokenizer = load(backbone)
    encoded = encode(tokenizer, [r.input for r in records])
    return encoded, over(encoded, tokenizer, max_length=MAX_LENGTH, stride=STRIDE)


def answer_rows(folder):
    columns, splits = read_columns(folder / "targets.arrow", ["labels"])
    return [columns["labels"][start:end] for start, end in pairwise(splits)]


def items_of(folder, tokenizer, records):
    files = folder / "features.arrow", folder / "targets.arrow"
    return Method(experiment(True), TYPES, tokenizer).dataset(*files, records)


def gold_of(records):
    return [list(r.gold) for r in records]


# Vocabulary


def test_special_markers_are_one_token_each(backbone):
    tokenizer = vocabulary(backbone, True)
    size = len(load(backbone))
    assert len(tokenizer) == size + 2 + len(TYPES)
    markers = ["=>", ";;", "AGE|", "NAME|"]
    ids = method.ids_of(tokenizer, markers, special=True)
    assert [row.tolist() for row in ids] == [[size + at] for at in range(4)]


def test_without_special_tokens_the_vocabulary_stays(backbone):
    tokenizer, before = vocabulary(backbone, False), load(backbone)
    assert tokenizer.backend_tokenizer.to_str() == before.backend_tokenizer.to_str()


# Targets


@each_vocabulary
def test_answers_are_those_of_gold_with_an_end(backbone, special, tmp_path):
    records = [*RECORDS, *TRICKS]
    tokenizer, _ = aligned(backbone, special, records, tmp_path)
    for row, one in zip(answer_rows(tmp_path), records, strict=True):
        assert row[-1] == tokenizer.eos_token_id
        assert tokenizer.eos_token_id not in row[:-1]
        written = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
        assert written == "".join(answers.pieces(one.input, one.gold))
        assert answers.parse(written) == [
            (span.type, one.input[span.start : span.end]) for span in one.gold
        ]


def test_special_tokens_shorten_answers_and_stand_for_markers_only(backbone, tmp_path):
    records = [*RECORDS, *TRICKS]
    size = len(load(backbone))
    _, _ = aligned(backbone, True, records, tmp_path)
    for row, one in zip(answer_rows(tmp_path), records, strict=True):
        assert (row >= size).sum() == max(0, 2 * len(one.gold) - 1)


def test_mentions_are_the_tokens_of_the_text(backbone, tmp_path):
    """The space before a word is part of its token: copying needs no other spelling."""
    one = record("It was Eve and Bob.", "Eve/NAME", "Bob/NAME")
    tokenizer, _ = aligned(backbone, True, [one], tmp_path)
    prompt = encode(tokenizer, [one.input]).ids.tolist()
    (row,) = answer_rows(tmp_path)
    size = len(load(backbone))
    mention = []
    for token in [*row.tolist()[:-1], size]:
        if token < size:
            mention.append(token)
            continue
        assert any(prompt[at : at + len(mention)] == mention for at in range(len(prompt)))
        mention = []


@each_vocabulary
def test_every_gold_span_meets_one_status(backbone, special, tmp_path):
    strange = record("Ann is 9.", "Ann/PLACE", "9/AGE")
    # The name that is meant comes second; what is written is read as the first.
    twice = replace(record("Joe, no: Joe!"), gold=(Span(9, 12, "NAME"),))
    wide = replace(record("Ann " * 20), gold=(Span(4, 79, "NAME"),))
    records = [*RECORDS, *TRICKS, strange, twice, wide]
    _, statuses = aligned(backbone, special, records, tmp_path)
    assert {status for row in statuses[:-3] for status in row} == {Status.KEPT}
    assert statuses[-3:] == [[Status.LOST, Status.KEPT], [Status.REPAIRED], [Status.SPLIT]]


@each_vocabulary
def test_answers_of_windows_name_all_that_they_hold_whole(backbone, special, tmp_path):
    tokenizer, (statuses,) = aligned(backbone, special, [LONG], tmp_path)
    assert set(statuses) == {Status.KEPT}
    encoded, windows = read(backbone, [LONG])
    rows = answer_rows(tmp_path)
    assert len(rows) == len(windows.rows) > 3
    named = set()
    for row, first, last in zip(rows, windows.firsts, windows.lasts, strict=True):
        start, end = characters(encoded, 0, first, last, LONG.input)
        written = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
        found = answers.locate(LONG.input[start:end], answers.parse(written))
        found = {Span(span.start + start, span.end + start, span.type) for span in found}
        assert found == {s for s in LONG.gold if start <= s.start and s.end <= end}
        named |= found
    assert named == set(LONG.gold)


def test_a_text_that_fits_is_told_to_its_last_character(backbone, tmp_path):
    one = record("\u0000\u200b 9", "9/AGE")
    _, statuses = aligned(backbone, True, [one], tmp_path)
    assert statuses == [[Status.KEPT]]


@each_vocabulary
def test_no_record_is_no_answer(backbone, special, tmp_path):
    tokenizer, statuses = aligned(backbone, special, [], tmp_path)
    assert statuses == []
    assert items_of(tmp_path, tokenizer, []) == []


# Training


@each_vocabulary
def test_items_ask_for_the_answer_and_nothing_else(backbone, special, tmp_path):
    records = [*RECORDS, *TRICKS, LONG]
    tokenizer, _ = aligned(backbone, special, records, tmp_path)
    encoded, windows = read(backbone, records)
    (boundary,) = method.ids_of(tokenizer, ["=>"], special=True)
    assert len(boundary) == 1 or not special
    items = items_of(tmp_path, tokenizer, records)
    assert len(items) == len(windows.rows) > len(records)
    for item, answer, first, last in zip(
        items, answer_rows(tmp_path), windows.firsts, windows.lasts, strict=True
    ):
        prompt = [tokenizer.bos_token_id, *encoded.ids[first:last], *boundary]
        assert item["input_ids"].tolist() == [*prompt, *answer]
        assert item["labels"].tolist() == [IGNORED] * len(prompt) + answer.tolist()


class Recorder(torch.nn.Module):
    """Takes down the prompts, and answers each with the end of text."""

    def __init__(self):
        super().__init__()
        self.layer, self.prompts = torch.nn.Linear(1, 1), []

    def write(self, input_ids, attention_mask, *, longest, end, pad):
        self.prompts += [ids[m == 1].tolist() for ids, m in zip(input_ids, attention_mask)]  # noqa: B905
        return torch.full((len(input_ids), 1), end), torch.zeros(len(input_ids), 1)


@each_vocabulary
def test_prompts_of_training_are_those_of_prediction(backbone, special, tmp_path):
    records = [*RECORDS, *TRICKS, LONG]
    tokenizer, _ = aligned(backbone, special, records, tmp_path)
    predictor = Method.Predictor.from_training(
        Recorder(), Method(experiment(special), TYPES, tokenizer), tmp_path / "targets.arrow"
    )
    assert predictor.predict([r.input for r in records]) == [[] for _ in records]
    taught = [
        item["input_ids"][item["labels"] == IGNORED].tolist()
        for item in items_of(tmp_path, tokenizer, records)
    ]
    assert sorted(predictor.model.prompts) == sorted(taught)
    assert [len(prompt) for prompt in predictor.model.prompts] == sorted(map(len, taught))


@each_vocabulary
def test_answers_grow_as_long_as_in_training(backbone, special, tmp_path):
    tokenizer, _ = aligned(backbone, special, RECORDS, tmp_path)
    predictor = Method.Predictor.from_training(
        Recorder(), Method(experiment(special), TYPES, tokenizer), tmp_path / "targets.arrow"
    )
    assert predictor.longest == max(map(len, answer_rows(tmp_path)))


@each_vocabulary
def test_accuracy_is_the_share_of_right_answer_tokens(backbone, special, tmp_path):
    tokenizer, _ = aligned(backbone, special, RECORDS, tmp_path)
    model = Generator(language_model(backbone, tokens=len(tokenizer))).eval()
    items = items_of(tmp_path, tokenizer, RECORDS)
    batch = collate(items, tokenizer.pad_token_id)
    with torch.no_grad():
        logits = model(**batch)["logits"]
    # Some answers are made right: the untrained model's would all be wrong.
    labels = batch["labels"]
    asked = labels[labels != IGNORED]
    made_right = asked % 2 == 0
    logits[made_right] = torch.nn.functional.one_hot(asked[made_right], logits.shape[-1]).float()
    predicted = Method.summarize(logits, labels)
    assert predicted.shape == labels.shape
    figures = Method.compute_metrics(predicted.numpy(), labels.numpy())
    hits = int((logits.argmax(-1) == asked).sum())
    assert figures == {Method.BEST.key: pytest.approx(hits / len(asked))}
    assert 0 < figures["accuracy"] < 1


# Predicting


@pytest.fixture(scope="module")
def trained(backbone, tmp_path_factory):
    """For each vocabulary, a predictor that knows RECORDS by heart, saved beside its backbone."""
    predictors = {}
    for special in (True, False):
        folder = tmp_path_factory.mktemp("features")
        tokenizer, _ = aligned(backbone, special, RECORDS, folder)
        set_seed(2)
        model = Method(experiment(special), TYPES, tokenizer).build(backbone)
        batch = collate(items_of(folder, tokenizer, RECORDS), tokenizer.pad_token_id)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(70):
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        predictor = Method.Predictor.from_training(
            model, Method(experiment(special), TYPES, tokenizer), folder / "targets.arrow"
        )
        predictor.threshold = 0.5
        kept = backbone.parent / f"special-{special}"
        predictor.save(kept, experiment(special), updates=3, examples=20)
        predictors[special] = predictor
    return predictors


def bare(rows):
    return [[scored.span for scored in row] for row in rows]


@each_vocabulary
def test_a_model_that_knows_its_records_finds_exactly_their_gold(trained, special):
    found = trained[special].predict(TEXTS)
    assert bare(found) == gold_of(RECORDS)
    assert all(0.5 <= score <= 1 for row in found for _, score in row)


@each_vocabulary
def test_company_does_not_change_what_is_found(trained, special):
    predictor = trained[special]
    order = np.random.default_rng(0).permutation(len(TEXTS) * 4) % len(TEXTS)
    found = predictor.predict([TEXTS[number] for number in order])
    assert bare(found) == [gold_of(RECORDS)[number] for number in order]
    expected = predictor.predict(TEXTS)
    for number, row in zip(order, found, strict=True):
        scores = [scored.score for scored in expected[number]]
        assert [scored.score for scored in row] == pytest.approx(scores, abs=1e-4)


@each_vocabulary
def test_the_score_is_the_mean_probability_of_the_answer(trained, special, tmp_path, backbone):
    predictor = trained[special]
    tokenizer, _ = aligned(backbone, special, RECORDS, tmp_path)
    items = items_of(tmp_path, tokenizer, RECORDS)
    batch = collate(items, tokenizer.pad_token_id)
    with torch.inference_mode():
        logs = predictor.model(**batch)["logits"].log_softmax(-1)
    labels = batch["labels"]
    asked = labels != IGNORED
    sure = torch.zeros(labels.shape)
    sure[asked] = logs[torch.arange(len(logs)), labels[asked]]
    means = (sure.sum(dim=1) / asked.sum(dim=1)).exp()
    for expected, found in zip(means, predictor.predict(TEXTS), strict=True):
        for scored in found:
            assert scored.score == pytest.approx(float(expected), abs=1e-4)


class Oracle(torch.nn.Module):
    """Writes the answers that it was given, by the prompts that they belong to."""

    def __init__(self, items):
        super().__init__()
        self.layer, self.known = torch.nn.Linear(1, 1), {}
        for item in items:
            asked = item["labels"] == IGNORED
            self.known[tuple(item["input_ids"][asked])] = item["labels"][~asked]

    def write(self, input_ids, attention_mask, *, longest, end, pad):
        ids = torch.full((len(input_ids), longest), pad)
        for row, (prompt, mask) in enumerate(zip(input_ids, attention_mask, strict=True)):
            answer = torch.from_numpy(self.known[tuple(prompt[mask == 1].tolist())])
            ids[row, : len(answer)] = answer
        return ids, torch.zeros(ids.shape)


@each_vocabulary
def test_what_windows_name_glues_back_to_the_whole(backbone, special, tmp_path):
    """Each mention once, from the window that sees it best, also where windows overlap."""
    parts = [f"Ann{n} and Bob{n}," for n in range(30)]
    mentions = [f"{name}{n}/NAME" for n in range(30) for name in ("Ann", "Bob")]
    records = [record(" ".join(parts), *mentions), *RECORDS, LONG]
    tokenizer, statuses = aligned(backbone, special, records, tmp_path)
    assert {status for row in statuses for status in row} == {Status.KEPT}
    oracle = Oracle(items_of(tmp_path, tokenizer, records))
    predictor = Method.Predictor.from_training(
        oracle, Method(experiment(special), TYPES, tokenizer), tmp_path / "targets.arrow"
    )
    assert bare(predictor.predict([r.input for r in records])) == gold_of(records)


def test_mentions_of_two_windows_do_not_overlap(trained, backbone, monkeypatch):
    predictor = trained[True]
    encoded, windows = read(backbone, [LONG])
    stop = int(encoded.starts[windows.stops[0]])  # the second window decides from here on
    before = [ScoredSpan(Span(stop - far, stop - far + 2, "AGE"), 0.5) for far in (9, 6, 3)]
    wide = ScoredSpan(Span(stop - 8, stop + 9, "NAME"), 0.9)
    told = {0: before, 1: [wide]}
    monkeypatch.setattr(
        predictor, "predict_windows", lambda *given: [told.get(w, []) for w in given[2]]
    )
    assert predictor.candidates([LONG.input], label="test") == [[wide]]


@each_vocabulary
def test_any_model_finds_spans_inside_the_text(trained, special):
    """Also of texts that it has never seen, long, and empty."""
    predictor = trained[special]
    texts = ["", " \n", LONG.input, TRICKS[0].input, "Eve is 9.", "\u0000", "x" * 500]
    for text, row in zip(texts, predictor.candidates(texts, label="test"), strict=True):
        spans = [scored.span for scored in row]
        assert spans == sorted(spans)
        for span in spans:
            assert 0 <= span.start < span.end <= len(text)
            assert span.type in TYPES
        assert all(one.end <= other.start for one, other in pairwise(spans))


def test_types_that_are_unheard_of_are_left_out(trained):
    predictor = trained[True]
    known = predictor.types
    try:
        predictor.settings["types"] = ["AGE"]
        found = bare(predictor.predict(TEXTS))
    finally:
        predictor.settings["types"] = known
    assert found == [[span for span in row if span.type == "AGE"] for row in gold_of(RECORDS)]


def test_settings_are_saved(trained, backbone):
    for special, predictor in trained.items():
        assert read_json(backbone.parent / f"special-{special}" / SETTINGS) == {
            "task": "ner",
            "method": "generation",
            "types": TYPES,
            "threshold": 0.5,
            "max_length": MAX_LENGTH,
            "stride": STRIDE,
            "four_bit": False,
            "training": {"updates": 3, "examples": 20},
            "longest": predictor.longest,
        }


@pytest.mark.slow
def test_a_new_process_finds_the_same(trained, backbone, tmp_path):
    code = (
        "import sys, json; from pathlib import Path\n"
        "from wxb.tasks.ner.generation.method import Method\n"
        "texts, folder = json.loads(sys.argv[1]), Path(sys.argv[2])\n"
        "load = Method.Predictor.load\n"
        "found = [load(folder / f'special-{s}').predict(texts) for s in (True, False)]\n"
        "Path(sys.argv[3]).write_text(json.dumps(found))"
    )
    out = tmp_path / "found.json"
    subprocess.run(
        [sys.executable, "-c", code, json.dumps(TEXTS), str(backbone.parent), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"},
        check=True,
    )
    expected = [trained[special].predict(TEXTS) for special in (True, False)]
    assert json.loads(out.read_text()) == json.loads(json.dumps(expected))
