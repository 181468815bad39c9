"""Named entities by generation: answers, prompts and predictions, down to the token ids."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from transformers import set_seed

from tests import tiny, training_steps
from tests.ner_project import without_scores
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED, read_columns, write_columns, write_encoded
from wxb.corpora.text.tokenizers import encode, load, token_ids, train
from wxb.corpora.text.windows import character_range, text_windows
from wxb.tasks.ner.generation import GenerationMethod
from wxb.tasks.ner.models import answers
from wxb.tasks.ner.models.windowed import Status
from wxb.tasks.ner.record import Span
from wxb.training.batches import collate

TYPES = ["AGE", "NAME"]
MAX_LENGTH, STRIDE = 32, 12


def record(text, *mentions):
    """A record whose gold spans are the mentions, `value/TYPE`, in the order of the text."""
    spans, end = [], 0
    for mention in mentions:
        value, kind = mention.rsplit("/", 1)
        start = text.index(value, end)
        end = start + len(value)
        spans.append(Span(start, end, kind))
    return Record(id=text, input=text, gold=tuple(spans), language=None, group="")


RECORDS = [
    record("Ann is 9.", "Ann/NAME", "9/AGE"),
    record("No one is here."),
    record("  Zoë\tMüller, 34\r\n ", "Zoë\tMüller/NAME", "34/AGE"),
    record("Bob saw Bob, 12", "Bob/NAME", "Bob/NAME", "12/AGE"),
    record("李明今年三十岁。", "李明/NAME", "三十/AGE"),
    record("👨‍👩‍👧 is Eve;; A|B\\C", "Eve/NAME", "A|B\\C/NAME"),
]
# Texts that look like answers, or like tokens of answers.
LOOKALIKES = [
    record("NAME|Ann;;AGE|9=>", "Ann/NAME", "9/AGE"),
    record("</s><s><pad> ;; =>AGE|Ann", "Ann/NAME"),
    record("It is </s>=> now", "</s>=>/NAME"),
]
TEXTS = [r.input for r in RECORDS]
LONG = record("Ann 5 Dora 6 " * 20, *["Ann/NAME", "5/AGE", "Dora/NAME", "6/AGE"] * 20)

each_vocabulary = pytest.mark.parametrize("special", [True, False], ids=["special", "plain"])


def experiment(special):
    return training_steps.experiment(
        "ner",
        "generation",
        encoding={"max_length": MAX_LENGTH, "stride": STRIDE, "special_tokens": special},
        prediction={"batch_size": 4},
        training={"epochs": 1, "batch_size": 4, "learning_rate": 1e-3},
    )


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A folder with a small LLaMA and its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "decoder"
    tokenizer = train("byte-level-bpe", 300, TEXTS)
    return tiny.llama(folder, tokenizer, max_position_embeddings=128, initializer_range=0.02)


def write_targets(backbone, special, records, folder):
    """Write features and targets as the stages do; the tokenizer, and statuses by record."""
    encoded, windows = read(backbone, records)
    write_encoded(folder / "features.arrow", [encoded])
    method = GenerationMethod(experiment(special), TYPES, load(backbone))
    columns, splits, statuses = method.align(encoded, windows, records)
    write_columns(folder / "targets.arrow", columns, splits)
    remaining = iter(map(Status, statuses))
    by_record = [[next(remaining) for _ in record.gold] for record in records]
    assert next(remaining, None) is None
    return method.tokenizer, by_record


def read(backbone, records):
    """The tokens of the texts, and their windows."""
    tokenizer = load(backbone)
    encoded = encode(tokenizer, [r.input for r in records])
    return encoded, text_windows(encoded, tokenizer, max_length=MAX_LENGTH, stride=STRIDE)


def answer_rows(folder):
    columns, splits = read_columns(folder / "targets.arrow", ["labels"])
    return [columns["labels"][start:end] for start, end in pairwise(splits)]


def items_of(folder, tokenizer, records):
    files = folder / "features.arrow", folder / "targets.arrow"
    return GenerationMethod(experiment(False), TYPES, tokenizer).items(*files, records)


def gold_of(records):
    return [list(r.gold) for r in records]


# Targets


@each_vocabulary
def test_answers_name_the_gold_spans_and_end(backbone, special, tmp_path):
    records = [*RECORDS, *LOOKALIKES]
    tokenizer, _ = write_targets(backbone, special, records, tmp_path)
    for row, record in zip(answer_rows(tmp_path), records, strict=True):
        assert row[-1] == tokenizer.eos_token_id
        assert tokenizer.eos_token_id not in row[:-1]
        answer = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
        assert answer == "".join(answers.answer_parts(record.input, record.gold))


def test_special_tokens_are_used_for_markers_only(backbone, tmp_path):
    records = [*RECORDS, *LOOKALIKES]
    size = len(load(backbone))
    write_targets(backbone, True, records, tmp_path)
    for row, record in zip(answer_rows(tmp_path), records, strict=True):
        assert (row >= size).sum() == max(0, 2 * len(record.gold) - 1)


def test_mentions_are_the_tokens_of_the_text(backbone, tmp_path):
    """Including the space before a word, which is part of its token."""
    sentence = record("It was Eve and Bob.", "Eve/NAME", "Bob/NAME")
    tokenizer, _ = write_targets(backbone, True, [sentence], tmp_path)
    prompt = encode(tokenizer, [sentence.input]).ids.tolist()
    (row,) = answer_rows(tmp_path)
    size = len(load(backbone))
    mention = []
    for token in [*row.tolist()[:-1], size]:
        if token < size:
            mention.append(token)
            continue
        assert any(prompt[i : i + len(mention)] == mention for i in range(len(prompt)))
        mention = []


@each_vocabulary
def test_every_gold_span_has_one_status(backbone, special, tmp_path):
    unknown = record("Ann is 9.", "Ann/PLACE", "9/AGE")
    # The gold mention is the second; `locate` finds the first.
    twice = replace(record("Joe, no: Joe!"), gold=(Span(9, 12, "NAME"),))
    wide = replace(record("Ann " * 20), gold=(Span(4, 79, "NAME"),))
    records = [*RECORDS, *LOOKALIKES, unknown, twice, wide]
    _, statuses = write_targets(backbone, special, records, tmp_path)
    assert {status for row in statuses[:-3] for status in row} == {Status.KEPT}
    assert statuses[-3:] == [[Status.LOST, Status.KEPT], [Status.REPAIRED], [Status.SPLIT]]


@each_vocabulary
def test_answers_name_all_spans_that_their_window_holds_whole(backbone, special, tmp_path):
    tokenizer, (statuses,) = write_targets(backbone, special, [LONG], tmp_path)
    assert set(statuses) == {Status.KEPT}
    encoded, windows = read(backbone, [LONG])
    rows = answer_rows(tmp_path)
    assert len(rows) == len(windows.rows) > 3
    named = set()
    for row, first, last in zip(rows, windows.reads_from, windows.reads_to, strict=True):
        start, end = character_range(encoded, 0, first, last, LONG.input)
        answer = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
        located = answers.locate(LONG.input[start:end], answers.parse(answer))
        spans = {Span(span.start + start, span.end + start, span.type) for span in located}
        assert spans == {s for s in LONG.gold if start <= s.start and s.end <= end}
        named |= spans
    assert named == set(LONG.gold)


# Training


@each_vocabulary
def test_only_tokens_of_the_answer_have_labels(backbone, special, tmp_path):
    records = [*RECORDS, *LOOKALIKES, LONG]
    tokenizer, _ = write_targets(backbone, special, records, tmp_path)
    encoded, windows = read(backbone, records)
    (boundary,) = token_ids(tokenizer, ["=>"], parse_special=True)
    assert len(boundary) == 1 or not special
    items = items_of(tmp_path, tokenizer, records)
    assert len(items) == len(windows.rows) > len(records)
    for item, answer, first, last in zip(
        items, answer_rows(tmp_path), windows.reads_from, windows.reads_to, strict=True
    ):
        prompt = [tokenizer.bos_token_id, *encoded.ids[first:last], *boundary]
        assert item["input_ids"].tolist() == [*prompt, *answer]
        assert item["labels"].tolist() == [IGNORED] * len(prompt) + answer.tolist()


class Recorder(torch.nn.Module):
    """Records the prompts, and answers each with the end of text."""

    def __init__(self):
        super().__init__()
        self.layer, self.prompts = torch.nn.Linear(1, 1), []

    def generate(self, input_ids, attention_mask, *, max_new_tokens, eos, pad):
        self.prompts += [ids[m == 1].tolist() for ids, m in zip(input_ids, attention_mask)]  # noqa: B905
        return torch.full((len(input_ids), 1), eos), torch.zeros(len(input_ids), 1)


@each_vocabulary
def test_prompts_of_training_and_prediction_are_equal(backbone, special, tmp_path):
    records = [*RECORDS, *LOOKALIKES, LONG]
    tokenizer, _ = write_targets(backbone, special, records, tmp_path)
    predictor = GenerationMethod(experiment(special), TYPES, tokenizer).predictor(
        Recorder(), tmp_path / "targets.arrow", updates=3, examples=20
    )
    assert predictor.predict([r.input for r in records]) == [[] for _ in records]
    training_prompts = [
        item["input_ids"][item["labels"] == IGNORED].tolist()
        for item in items_of(tmp_path, tokenizer, records)
    ]
    assert sorted(predictor.model.prompts) == sorted(training_prompts)
    assert [len(prompt) for prompt in predictor.model.prompts] == sorted(map(len, training_prompts))


# Instructions

TEMPLATE = """\
{%- for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}
{%- if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}assistant: {% endif %}"""


@pytest.mark.parametrize("shots", [0, 2])
def test_prompts_with_an_instruction_are_those_of_the_chat_template(backbone, shots, tmp_path):
    tokenizer = load(backbone)
    tokenizer.chat_template = TEMPLATE
    encoding = {"instruction": "List names.", "shots": shots}
    settings = experiment(False).model_dump()
    settings["encoding"] |= encoding
    settings["tuning"] = {"frozen": True}
    method = GenerationMethod(type(experiment(False)).model_validate(settings), TYPES, tokenizer)
    features, targets, _ = training_steps.encode(method, RECORDS, tmp_path)
    predictor = method.predictor(Recorder(), targets)
    predictor.calibrate(RECORDS, caption="")
    predictor.model.prompts.clear()
    predictor.predict(TEXTS)

    def turns(*texts):
        """Questions with the answers of all but the last, as tokens."""
        messages = []
        for text in texts:
            answer = answers.answer_parts(text, RECORDS[TEXTS.index(text)].gold)
            messages.append({"role": "user", "content": text})
            messages.append({"role": "assistant", "content": "".join(answer)})
        messages[0]["content"] = f"List names.\n\n{texts[0]}"
        return tokenizer.apply_chat_template(
            messages[:-1], add_generation_prompt=True, return_dict=False
        )

    with_spans = [r.input for r in RECORDS if r.gold][:shots]
    expected = [turns(*with_spans, text) for text in TEXTS]
    assert sorted(predictor.model.prompts) == sorted(expected)
    if not shots:  # those of training are equal
        for item, prompt in zip(method.items(features, targets, RECORDS), expected, strict=True):
            assert item["input_ids"][item["labels"] == IGNORED].tolist() == prompt
            assert item["labels"][-1] == tokenizer.eos_token_id


# Predicting


@pytest.fixture(scope="module")
def trained(backbone, tmp_path_factory):
    """A predictor that is overfitted to RECORDS for each vocabulary, saved beside its backbone."""
    predictors = {}
    for special in (True, False):
        folder = tmp_path_factory.mktemp("features")
        tokenizer, _ = write_targets(backbone, special, RECORDS, folder)
        set_seed(2)
        method = GenerationMethod(experiment(special), TYPES, tokenizer)
        model = method.new_model(backbone)
        batch = collate(items_of(folder, tokenizer, RECORDS), tokenizer.pad_token_id)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(70):
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        predictor = method.predictor(model, folder / "targets.arrow", updates=3, examples=20)
        predictor.threshold = 0.5
        folder = backbone.parent / f"special-{special}"
        predictor.save(folder)
        predictors[special] = predictor
    return predictors


@each_vocabulary
def test_an_overfitted_model_finds_exactly_the_gold_spans(trained, special):
    predictions = trained[special].predict(TEXTS)
    assert without_scores(predictions) == gold_of(RECORDS)
    assert all(0.5 <= score <= 1 for row in predictions for _, score in row)


@each_vocabulary
def test_the_score_is_the_mean_probability_of_the_answer(trained, special, tmp_path, backbone):
    predictor = trained[special]
    tokenizer, _ = write_targets(backbone, special, RECORDS, tmp_path)
    items = items_of(tmp_path, tokenizer, RECORDS)
    batch = collate(items, tokenizer.pad_token_id)
    with torch.inference_mode():
        logs = predictor.model(**batch)["logits"].log_softmax(-1)
    labels = batch["labels"]
    counted = labels != IGNORED
    log_probs = torch.zeros(labels.shape)
    log_probs[counted] = logs[torch.arange(len(logs)), labels[counted]]
    means = (log_probs.sum(dim=1) / counted.sum(dim=1)).exp()
    for expected, spans in zip(means, predictor.predict(TEXTS), strict=True):
        for scored in spans:
            assert scored.score == pytest.approx(float(expected), abs=1e-4)


class Oracle(torch.nn.Module):
    """Writes the gold answer of each prompt."""

    def __init__(self, items):
        super().__init__()
        self.layer, self.answers = torch.nn.Linear(1, 1), {}
        for item in items:
            is_prompt = item["labels"] == IGNORED
            self.answers[tuple(item["input_ids"][is_prompt])] = item["labels"][~is_prompt]

    def generate(self, input_ids, attention_mask, *, max_new_tokens, eos, pad):
        ids = torch.full((len(input_ids), max_new_tokens), pad)
        for row, (prompt, mask) in enumerate(zip(input_ids, attention_mask, strict=True)):
            answer = torch.from_numpy(self.answers[tuple(prompt[mask == 1].tolist())])
            ids[row, : len(answer)] = answer
        return ids, torch.zeros(ids.shape)


@each_vocabulary
def test_spans_of_windows_are_merged(backbone, special, tmp_path):
    parts = [f"Ann{n} and Bob{n}," for n in range(30)]
    mentions = [f"{name}{n}/NAME" for n in range(30) for name in ("Ann", "Bob")]
    records = [record(" ".join(parts), *mentions), *RECORDS, LONG]
    tokenizer, statuses = write_targets(backbone, special, records, tmp_path)
    assert {status for row in statuses for status in row} == {Status.KEPT}
    oracle = Oracle(items_of(tmp_path, tokenizer, records))
    predictor = GenerationMethod(experiment(special), TYPES, tokenizer).predictor(
        oracle, tmp_path / "targets.arrow", updates=3, examples=20
    )
    assert without_scores(predictor.predict([r.input for r in records])) == gold_of(records)


def test_unknown_types_are_left_out(trained, monkeypatch):
    predictor = trained[True]
    monkeypatch.setitem(predictor.settings, "types", ["AGE"])
    assert without_scores(predictor.predict(TEXTS)) == [
        [span for span in row if span.type == "AGE"] for row in gold_of(RECORDS)
    ]


@each_vocabulary
def test_a_loaded_predictor_predicts_the_same(trained, special, backbone):
    folder, predictor = backbone.parent / f"special-{special}", trained[special]
    loaded = GenerationMethod.PREDICTOR.load(folder)
    predictions, expected = loaded.predict(TEXTS), predictor.predict(TEXTS)
    assert without_scores(predictions) == without_scores(expected)
    for row, expected_row in zip(predictions, expected, strict=True):
        scores = [scored.score for scored in expected_row]
        assert [scored.score for scored in row] == pytest.approx(scores, abs=1e-4)
    assert loaded.settings == predictor.settings
