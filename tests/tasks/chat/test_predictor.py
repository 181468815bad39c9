import json
import math
import subprocess
import sys
from itertools import islice, takewhile

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

import wxb
from tests import talking
from tests.talking import ANSWERS, RECORDS
from wxb.core.errors import WxbError
from wxb.tasks.chat.params import Prediction
from wxb.tasks.chat.predictor import Replier, Reply
from wxb.tasks.chat.record.conversation import message, to_text
from wxb.tasks.chat.sft import template
from wxb.training.backbones import tuning


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A whole model, an adapter, and one on a backbone in 4 bits."""
    folder = tmp_path_factory.mktemp("models")
    talking.trained(folder / "whole")
    talking.trained(folder / "adapter", talking.LORA)
    talking.trained(folder / "four-bit", {**talking.LORA, "four_bit": True})
    return folder


@pytest.fixture(scope="module")
def whole(models):
    return Replier.load(models / "whole")


def test_it_answers_what_it_was_shown_and_ends_by_itself(whole):
    replies = whole.predict([*ANSWERS])
    assert [reply.text for reply in replies] == [*ANSWERS.values()]
    assert all(reply.ended for reply in replies)


def test_a_batch_gives_what_single_questions_do(whole):
    asked = [*ANSWERS, to_text([message("system", "Hm."), message("user", "Spell cat.")]), "x" * 40]
    assert whole.predict(asked) == [whole.predict([text])[0] for text in asked]


def test_streaming_gives_what_predicting_does(whole):
    for text in [*ANSWERS, "Hot cat?"]:
        streamed = "".join(whole.reply([message("user", text)])).strip()
        assert streamed == whole.predict([text])[0].text


def test_keys_and_values_that_are_kept_change_nothing(whole):
    prompts = template.tokens(
        whole.tokenizer, [[message("user", t)] for t in ANSWERS], "roles", answer_next=True
    )
    for prompt in prompts:
        ids = prompt.ids.tolist()
        for token in islice(whole._written(prompt.ids), 12):
            with torch.inference_mode():
                logits = whole.model.backbone(torch.tensor([ids]), use_cache=False).logits
            assert token == int(logits[0, -1].argmax())
            ids.append(token)


def test_a_long_history_is_cut_at_whole_turns_and_counted(whole):
    turns = [message("user", "Spell cat."), message("assistant", "c-a-t")] * 400
    conversation = [message("system", "Brief."), *turns, message("user", "Spell cat.")]
    fits = whole.fitting(conversation)
    assert fits.length > 4000
    assert len(fits.tokens.ids) <= whole.window - whole.prediction.max_new_tokens
    assert fits.dropped % 2 == 0
    kept = conversation[1 + fits.dropped :]
    (expected,) = template.tokens(
        whole.tokenizer, [[conversation[0], *kept]], "roles", answer_next=True
    )
    assert (fits.tokens.ids == expected.ids).all()
    reply = whole.predict([to_text(conversation)])[0]
    assert reply.dropped == fits.dropped == whole.dropped(conversation)
    assert whole.describe("", reply)["dropped"] == fits.dropped


def test_a_message_that_is_too_long_is_told(whole):
    huge = "x " * 1000
    with pytest.raises(WxbError, match="too long: 2"):
        [*whole.reply([message("user", huge)])]
    assert whole.predict([huge, "Spell cat."])[0] == Reply("", ended=False, dropped=1)


@pytest.mark.parametrize(
    ("conversation", "told"),
    [
        ([], "empty conversation"),
        ([message("user", "a"), message("assistant", "b")], "nothing asked"),
        ([message("user", "a"), message("user", "b")], "roles out of order"),
    ],
)
def test_what_asks_nothing_is_told(whole, conversation, told):
    with pytest.raises(WxbError, match=told):
        [*whole.reply(conversation)]
    if conversation:
        with pytest.raises(WxbError, match=told):
            whole.predict([json.dumps(conversation)])


def test_what_is_blank_has_a_blank_reply(whole):
    blank, cat = whole.predict([" ", "Spell cat."])
    assert blank == Reply("", ended=True)
    assert cat.text == "c-a-t"


def test_tokens_are_those_of_all_ways_of_asking(models):
    grid = Prediction(grid=["zero-shot", "system"], max_new_tokens=3)
    for prediction, ways in ((Prediction(max_new_tokens=3), 1), (grid, 2)):
        cut, blank = Replier.load(models / "whole", prediction).predict(["Spell cat.", ""])
        assert (cut.ended, cut.tokens, blank.tokens) == (False, 3 * ways, 0)
    whole = Replier.load(models / "whole", Prediction())
    (ended,) = whole.predict(["Spell cat."])
    prompt = whole.fitting([message("user", "Spell cat.")]).tokens
    written = takewhile(lambda token: token not in whole.ends, whole._written(prompt.ids))
    assert ended.tokens == len([*written]) + 1


def test_half_a_surrogate_pair_is_read_as_a_question_mark(whole):
    assert whole.predict(["Spell \ud800"]) == whole.predict(["Spell ?"])


def test_a_stream_tells_whether_the_reply_ended(models):
    for allowed, ended in ((16, True), (2, False)):
        replier = Replier.load(models / "whole", Prediction(max_new_tokens=allowed))
        stream = replier.reply([message("user", "Spell cat.")])
        with pytest.raises(StopIteration) as end:
            [next(stream) for _ in range(allowed + 1)]
        assert end.value.value is ended


def test_a_conversation_is_asked_as_the_settings_say(models):
    few = Prediction(prompt="few-shot", max_new_tokens=16)
    replier = Replier.load(models / "whole", few)
    turns = [message("user", "Spell cat."), message("assistant", "c-a-t")] * 400
    conversation = [*turns, message("user", "Spell cat.")]
    plain = Replier.load(models / "whole", Prediction(max_new_tokens=16))
    alone, shown = (each.fitting(conversation[-1:]).length for each in (plain, replier))
    assert shown > 3 * alone
    # Examples are not messages of the conversation.
    assert replier.dropped(conversation) == plain.dropped(conversation)


def test_ways_of_asking(whole):
    conversation = [message("system", "Old."), message("user", "Spell cat.")]
    few = whole.prompted(conversation, "few-shot")
    assert [m["role"] for m in few] == ["system", *["user", "assistant"] * 4, "user"]
    assert {m["content"] for m in few[1:-1]} == {*ANSWERS, *ANSWERS.values()}
    assert whole.prompted(conversation, "system")[0]["content"] == Prediction().system
    assert whole.prompted(conversation, "instruction")[-1]["content"].endswith("\nSpell cat.")
    assert whole.prompted(conversation, "zero-shot") == conversation


def test_the_grid_tells_replies_to_every_prompt(models):
    asked = Prediction(grid=["zero-shot", "few-shot"], prompt="few-shot", max_new_tokens=16)
    (reply,) = Replier.load(models / "whole", asked).predict(["Spell cat."])
    assert dict(reply.others)["few-shot"] == reply.text
    assert dict(reply.others)["zero-shot"] == "c-a-t"


def test_loss_is_that_of_the_answers_alone(whole):
    found = whole.further_metrics(RECORDS, [])
    losses = []
    for record in RECORDS:
        turns = [message("user", record.input), message("assistant", record.gold["text"])]
        (tokens,) = template.tokens(whole.tokenizer, [turns], "roles")
        ids = torch.from_numpy(tokens.ids).long()
        with torch.inference_mode():
            logits = whole.model.backbone(ids[None]).logits[0]
        asked = torch.from_numpy(tokens.generated)[1:]
        losses.append(F.cross_entropy(logits[:-1][asked], ids[1:][asked], reduction="none"))
    mean = float(torch.cat(losses).mean())
    assert found["loss"] == pytest.approx(mean, rel=1e-4)
    assert found["perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
    assert found["scored"] == 4


@pytest.mark.parametrize("name", ["adapter", "four-bit"])
def test_an_adapter_answers_and_merges_with_its_logits(models, name, tmp_path):
    predictor = wxb.load(models / name)
    ids = torch.tensor([[1, 40, 41, 42, 43]])
    with torch.inference_mode():
        before = predictor.model.backbone(ids).logits
    assert predictor.predict(["Spell cat."])[0].text == "c-a-t"
    whole = tuning.merged(predictor.model.backbone, models / name)
    with torch.inference_mode():
        after = whole(ids).logits
    assert not hasattr(whole, "peft_config")
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)


PLAIN = """
import sys, torch
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer
chat = [{"role": "user", "content": "Spell cat."}]
for cls, folder in zip((AutoModelForCausalLM, AutoPeftModelForCausalLM), sys.argv[1:]):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), cls.from_pretrained(folder)
    inputs = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    written = model.generate(**inputs, max_new_tokens=20, do_sample=False)[0]
    print("REPLY", tokenizer.decode(written[inputs["input_ids"].shape[1]:]))
"""


@pytest.mark.slow
def test_plain_transformers_and_peft_load_it_in_a_new_process(models):
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(models / "whole"), str(models / "adapter")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("REPLY c-a-t</s>") == 2, done.stderr[-2000:]
