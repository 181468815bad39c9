import pytest
from pydantic import ValidationError

from tests import training_steps
from tests.tasks.classification import trained
from tests.tasks.classification.trained import LABELS, RECORDS, TEXTS
from wxb.core.errors import WxbError
from wxb.corpora.text import tokenizers
from wxb.tasks.classification.prompt import GAP, PromptMethod, truncate


class Recorder:
    def outputs(self, items, *, caption):
        self.prompts = [item["input_ids"].tolist() for item in items]
        return [{"logits": [0.0, 1.0]} for _ in items]


@pytest.fixture
def tokenizer(tmp_path):
    tokenizers.train("byte-level-bpe", 300, [text for text, _ in TEXTS]).save_pretrained(tmp_path)
    return tokenizers.load(tmp_path)


@pytest.mark.parametrize("shots", [0, 3])
def test_prompts_are_those_of_the_chat_template(tokenizer, monkeypatch, tmp_path, shots):
    recorder = Recorder()
    monkeypatch.setattr("wxb.tasks.methods.Predictor.outputs", recorder.outputs)
    experiment = trained.prompt(shots=shots)
    method = PromptMethod(experiment, LABELS, tokenizer)
    assert tokenizer.chat_template  # `train` saves the tokenizer before it trains
    features, targets, _ = training_steps.encode(method, RECORDS, tmp_path / "f")
    predictor = method.predictor(None, targets)
    predictor.calibrate(RECORDS, caption="")
    texts = [text for text, _ in TEXTS]
    predictor.predict(texts)
    # The first of each class in turn; the first three texts of TEXTS are good.
    assert LABELS == ["bad", "good"]
    turns = [RECORDS[index] for index in (3, 0, 4)[:shots]]

    def expected(text):
        questions = [*(r.input for r in turns), text]
        questions[0] = f"Good or bad?\n\n{questions[0]}"
        messages = [{"role": "user", "content": question} for question in questions]
        for index, record in reversed([*enumerate(turns)]):
            messages.insert(index + 1, {"role": "assistant", "content": record.gold})
        return tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )

    assert recorder.prompts == list(map(expected, texts))
    if not shots:
        items = method.items(features, targets, RECORDS)
        assert [item["input_ids"].tolist() for item in items] == recorder.prompts
        assert [LABELS[item["labels"]] for item in items] == [record.gold for record in RECORDS]


def test_an_answer_begins_as_in_the_template(tokenizer):
    shape = PromptMethod(trained.prompt(), LABELS, tokenizer).model_settings()
    assert shape["begin"] == []
    assert [tokenizer.decode(answer)[0] for answer in shape["answers"]] == [" ", " "]


def test_a_prompt_goes_on_to_where_the_answers_differ(tokenizer):
    tokenizer.chat_template = (  # as of a model that can think before it answers
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}|{% else %}"
        "{% generation %}<t></t>{{ m.content + eos_token }}{% endgeneration %}{% endif %}"
        "{% endfor %}"
    )
    method = PromptMethod(trained.prompt(), ["bad", "good", "good enough"], tokenizer)
    with pytest.raises(WxbError, match="same token"):
        method.model_settings()
    shape = PromptMethod(trained.prompt(), LABELS, tokenizer).model_settings()
    assert tokenizer.decode(shape["begin"]) == "<t></t>"
    assert [tokenizer.decode(answer) for answer in shape["answers"]] == ["b", "g"]


@pytest.mark.parametrize(("keep", "room"), [("start", 3), ("ends", 8)])
def test_a_long_text_is_cut_between_characters(tokenizer, keep, room):
    text = "The 🎬 was dull. " * 3
    encoded = tokenizers.encode(tokenizer, [text])
    cut = truncate(encoded, 0, text, {"max_length": room, "keep": keep})
    head, _, tail = cut.partition(GAP)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert bool(tail) == (keep == "ends")
    assert len(tokenizer.encode(head + tail, add_special_tokens=False)) <= room + 6  # of two 🎬


def test_examples_are_for_models_that_are_not_trained():
    settings = trained.prompt(shots=1).model_dump()
    with pytest.raises(ValidationError, match="frozen"):
        type(trained.prompt()).model_validate({**settings, "tuning": {}})
