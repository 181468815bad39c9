import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812
from transformers import AutoModelForCausalLM, AutoTokenizer

import wxb
from tests import chat_models
from tests.chat_models import ANSWERS, RECORDS
from wxb.cli.inputs import Item, predictions
from wxb.core.errors import WxbError
from wxb.corpora.text.templates import message
from wxb.corpora.text.tokenizers import token_ids
from wxb.tasks.chat.models.predictor import Replier, Reply
from wxb.tasks.chat.params import Prediction
from wxb.tasks.chat.record.conversation import serialize
from wxb.training.backbones import tuning


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of a full model, an adapter, and an adapter of a 4-bit backbone."""
    folder = tmp_path_factory.mktemp("models")
    chat_models.train_model(folder / "full")
    chat_models.train_model(folder / "adapter", chat_models.LORA)
    chat_models.train_model(folder / "four-bit", {**chat_models.LORA, "four_bit": True})
    return folder


@pytest.fixture(scope="module")
def full(models):
    return Replier.load(models / "full")


@pytest.fixture(scope="module")
def plain(models):
    return Replier.load(chat_models.train_model(models / "plain", template="plain"))


def test_a_trained_model_answers_and_ends_by_itself(full):
    replies = full.predict([*ANSWERS])
    assert [reply.text for reply in replies] == [*ANSWERS.values()]
    assert all(reply.ended for reply in replies)


def test_plain_transformers_load_the_folder_and_answer(models):
    assert_transformers_answer(models / "full", ANSWERS)


def assert_transformers_answer(folder, answers):
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for question, answer in answers.items():
        turns = [message("user", question)]
        inputs = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=32)
        assert ids.shape[1] < inputs["input_ids"].shape[1] + 32  # it ended by itself
        generated = ids[0, inputs["input_ids"].shape[1] :]
        assert tokenizer.decode(generated, skip_special_tokens=True).strip() == answer


def test_streaming_gives_the_same_reply_as_predict(full, plain):
    for model in (full, plain):
        for text in [*ANSWERS, "Hot cat?"]:
            streamed = "".join(model.reply([message("user", text)])).strip()
            assert streamed == model.predict([text])[0].text


def test_a_reply_of_an_untrained_model_ends_before_the_next_question(plain, monkeypatch):
    answer = plain.predict(["Spell cat."])[0].text
    monkeypatch.setattr(plain.template, "next_question", answer[2:4])
    (reply,) = plain.predict(["Spell cat."])
    assert (reply.text, reply.ended) == (answer[:2], True)
    assert "".join(plain.reply([message("user", "Spell cat.")])) == answer[:2]


def test_a_plain_answer_of_several_lines_is_whole_and_ends_in_transformers(models):
    folder = models / "lines"
    answers = {"Spell cat.": "c\na\nt", "Spell dog.": "d\no\ng"}
    chat_models.train_model(folder, answers=answers, template="plain")
    replies = Replier.load(folder).predict([*answers])
    assert [(reply.text, reply.ended) for reply in replies] == [(a, True) for a in answers.values()]
    assert_transformers_answer(folder, answers)


def test_a_long_history_is_truncated_at_whole_turns_and_counted(full):
    turns = [message("user", "Spell cat."), message("assistant", "c-a-t")] * 400
    conversation = [message("system", "Brief."), *turns, message("user", "Spell cat.")]
    kept = full.truncate(conversation)
    assert kept.length > 4000
    assert len(kept.tokens.ids) <= full.context_length - full.prediction.max_new_tokens
    assert kept.dropped % 2 == 0
    turns = conversation[1 + kept.dropped :]
    expected = full.template.tokens([conversation[0], *turns], answer_next=True)
    assert (kept.tokens.ids == expected.ids).all()
    reply = full.predict([serialize(conversation)])[0]
    assert reply.dropped == kept.dropped == full.count_dropped(conversation)
    assert full.output_fields("", reply)["dropped"] == kept.dropped


def test_a_message_that_is_too_long_is_an_error_or_an_empty_reply(full):
    huge = "x " * 1000
    with pytest.raises(WxbError, match="too long: 2"):
        [*full.reply([message("user", huge)])]
    assert full.predict([huge, "Spell cat."])[0] == Reply("", ended=False)
    invalid = '[{"role": "assistant", "content": "Hi."}]'
    results = [*predictions(full, [Item({}, "Spell cat."), Item({}, invalid)])]
    assert [item.error[:18] for item, _ in results] == ["", "roles out of order"]


def test_a_maximum_length_without_room_for_a_prompt_is_refused(full, monkeypatch):
    monkeypatch.setattr(full, "prediction", Prediction(max_new_tokens=full.context_length))
    with pytest.raises(WxbError, match=f"expected below {full.context_length}"):
        full.predict(["Spell cat."])


def test_a_conversation_without_a_question_is_refused(full):
    conversation = [message("user", "a"), message("assistant", "b")]
    with pytest.raises(WxbError, match="no question"):
        [*full.reply(conversation)]


def test_tokens_are_counted_with_the_end(models):
    cut, blank = Replier.load(models / "full", Prediction(max_new_tokens=3)).predict(
        ["Spell cat.", ""]
    )
    assert (cut.ended, cut.tokens, blank.tokens) == (False, 3, 0)
    full = Replier.load(models / "full", Prediction())
    (ended,) = full.predict(["Spell cat."])
    (answer,) = token_ids(full.tokenizer, [ended.text])
    assert ended.tokens == len(answer) + 1


def test_a_stream_returns_whether_the_reply_ended(full, monkeypatch):
    for allowed, ended in ((16, True), (2, False)):
        monkeypatch.setattr(full, "prediction", Prediction(max_new_tokens=allowed))
        stream = full.reply([message("user", "Spell cat.")])
        with pytest.raises(StopIteration) as end:
            [next(stream) for _ in range(allowed + 1)]
        assert end.value.value is ended


def test_a_conversation_gets_the_prompt_of_the_settings(models):
    few = Prediction(shots=4, max_new_tokens=16)
    replier = Replier.load(models / "full", few)
    turns = [message("user", "Spell cat."), message("assistant", "c-a-t")] * 400
    conversation = [*turns, message("user", "Spell cat.")]
    plain = Replier.load(models / "full", Prediction(max_new_tokens=16))
    zero_shot, few_shot = (r.truncate(conversation[-1:]).length for r in (plain, replier))
    assert few_shot > 3 * zero_shot
    # Examples are not messages of the conversation.
    assert replier.count_dropped(conversation) == plain.count_dropped(conversation)


def test_examples_precede_the_first_question(models):
    conversation = [message("system", "Old."), message("user", "Spell cat.")]
    replier = Replier.load(models / "full", Prediction(shots=3))
    few = replier.with_examples(conversation)
    assert [m["role"] for m in few] == ["system", *["user", "assistant"] * 3, "user"]
    assert {m["content"] for m in few[1:-1]} < {*ANSWERS, *ANSWERS.values()}
    replier.prediction = Prediction()
    assert replier.with_examples(conversation) == conversation
    replier.prediction = Prediction(shots=1)
    replier.settings["examples"] = []  # no validation conversation is a single question
    with pytest.raises(WxbError, match="holds no examples"):
        replier.with_examples(conversation)
    del replier.settings["examples"]
    with pytest.raises(WxbError, match="holds no examples"):
        replier.with_examples(conversation)


def test_loss_is_that_of_the_answers_alone(full):
    metrics = full.model_metrics(RECORDS, [])
    losses = []
    for record in RECORDS:
        turns = [message("user", record.input), message("assistant", record.gold["text"])]
        tokens = full.template.tokens(turns)
        ids = torch.from_numpy(tokens.ids).long()
        with torch.inference_mode():
            logits = full.model.backbone(ids[None]).logits[0]
        answer = torch.from_numpy(tokens.generated)[1:]
        losses.append(F.cross_entropy(logits[:-1][answer], ids[1:][answer], reduction="none"))
    mean = float(torch.cat(losses).mean())
    assert metrics["loss"] == pytest.approx(mean, rel=1e-4)
    assert metrics["perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
    assert metrics["scored"] == 4


@pytest.mark.parametrize("name", ["adapter", "four-bit"])
def test_an_adapter_answers_and_merges_with_its_logits(models, name, tmp_path):
    predictor = wxb.load(models / name)
    ids = torch.tensor([[1, 40, 41, 42, 43]])
    with torch.inference_mode():
        before = predictor.model.backbone(ids).logits
    assert predictor.predict(["Spell cat."])[0].text == "c-a-t"
    full = tuning.merge_adapter(predictor.model.backbone, models / name)
    with torch.inference_mode():
        after = full(ids).logits
    assert not hasattr(full, "peft_config")
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)
