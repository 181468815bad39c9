"""Every kind of model: one beam is greedy, padding is invisible, scores are log probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812
from transformers import GenerationConfig, GPT2LMHeadModel

from tests.tasks.translation.made import LONGEST, SHAPES, SOURCES, TARGETS, learner, tokenizer
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import ids_of
from wxb.models import decoding
from wxb.tasks.translation.metrics import sums
from wxb.tasks.translation.predictor import decoded, source_ids, special
from wxb.tasks.translation.seq2seq import model, prompted
from wxb.training.batches import collate

IDS = special(tokenizer())
PAD, BOS, EOS = IDS["pad"], IDS["bos"], IDS["eos"]
each_kind = pytest.mark.parametrize("name", SHAPES)
some = st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=4, unique=True)
seeds = st.integers(0, 99)


def batch(places, extra=0):
    """Sources and targets with so many more columns of padding."""
    targets = ids_of(tokenizer(), [TARGETS[at] for at in places])
    items = [
        {"input_ids": ids[:12], "labels": np.append(target[:8], EOS)}
        for ids, target in zip(
            source_ids(tokenizer(), [SOURCES[at] for at in places]), targets, strict=True
        )
    ]
    made = collate(items, PAD)
    fill = {"input_ids": PAD, "attention_mask": 0, "labels": IGNORED}
    return {name: F.pad(values, (0, extra), value=fill[name]) for name, values in made.items()}


def sought(made, places, extra=0, **options):
    given = batch(places, extra)
    return made.search(given["input_ids"], given["attention_mask"], max_new_tokens=8, **options)


def texts(found):
    """Of each row the sequences up to their ends."""
    return [
        [ids[: ids.index(EOS)] if EOS in ids else ids for ids in rows]
        for rows in found.tokens.tolist()
    ]


@each_kind
@given(some, seeds)
@settings(deadline=None, max_examples=8)
def test_one_beam_is_greedy(name, places, seed):
    made, given = learner(name, seed=seed), batch(places)
    inputs = given["input_ids"], given["attention_mask"]
    state = made.model.encode(*inputs)
    first = torch.full((len(places), 1), BOS)
    limits = {"eos": [EOS], "pad": PAD, "max_new_tokens": 8}
    beam = decoding.beam(made.model.step, state, first, beams=1, **limits)
    greedy = sought(made, places)
    assert texts(beam) == texts(greedy)
    assert torch.allclose(beam.scores, greedy.scores)


@each_kind
@given(some, st.integers(1, 3), st.integers(0, 4), seeds)
@settings(deadline=None, max_examples=8)
def test_a_batch_gives_what_single_sentences_give(name, places, beams, extra, seed):
    made = learner(name, seed=seed)
    together = sought(made, places, extra, beams=beams)
    for row, at in enumerate(places):
        alone = sought(made, [at], beams=beams)
        assert texts(together)[row][0] == texts(alone)[0][0]
        assert torch.allclose(together.scores[row], alone.scores[0])


@each_kind
@given(some, st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0]), seeds)
@settings(deadline=None, max_examples=8)
def test_a_score_is_the_teacher_forced_log_probability(name, places, beams, penalty, seed):
    made, given = learner(name, seed=seed), batch(places)
    inputs = given["input_ids"], given["attention_mask"]
    found = made.search(*inputs, max_new_tokens=8, beams=beams, length_penalty=penalty)
    for k in range(found.tokens.shape[1]):
        tokens = found.tokens[:, k]
        with torch.no_grad():
            logits = made.model(*inputs, tokens)["logits"]
        logs = logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., 0]
        for row, ids in enumerate(tokens.tolist()):
            length = ids.index(EOS) + 1 if EOS in ids else len(ids)
            expected = float(logs[row, :length].sum()) / length**penalty
            assert float(found.scores[row, k]) == pytest.approx(expected)


@each_kind
def test_padding_changes_no_loss_and_what_is_padding_has_none(name):
    made = learner(name).train()
    few, more = (made(**batch([0, 1, 2], extra))["loss"] for extra in (0, 5))
    assert few.item() == pytest.approx(more.item())
    given = batch([0, 1, 2])
    targets = given["labels"].masked_fill(given["labels"] == IGNORED, PAD)
    whole = made.model(given["input_ids"], given["attention_mask"], targets)["loss"]
    assert few.item() == pytest.approx(whole.item())


@each_kind
def test_while_it_does_not_learn_its_translations_are_scored(name):
    made, given = learner(name), batch([0, 1, 2])
    found = made(**given)
    longest = min(LONGEST, 2 * given["labels"].shape[1] + 8)
    tokens = decoding.generate(
        made.model, given["input_ids"], given["attention_mask"], max_new_tokens=longest
    )
    written = [
        decoded(tokenizer(), ids[: ids.index(EOS)] if EOS in ids else ids)
        for ids in tokens.tolist()
    ]
    references = [
        [decoded(tokenizer(), [i for i in ids if i not in (IGNORED, EOS)])]
        for ids in given["labels"].tolist()
    ]
    assert found["statistics"].tolist() == sums.bleu_statistics(written, references).tolist()


@each_kind
def test_what_is_kept_translates_as_before(name, tmp_path):
    made = learner(name)
    made.float().save_pretrained(tmp_path)
    other = learner(name, seed=1).float()
    other.read(tmp_path)
    assert all(a.equal(b) for a, b in zip(made.parameters(), other.parameters(), strict=True))
    assert [path.suffix for path in sorted(tmp_path.iterdir())][-1] == ".safetensors"


@each_kind
def test_what_was_looked_at_sums_to_one(name):
    made = learner(name)
    source, target = np.array([5, 6, 7]), np.array([8, 9])
    weights = made.attention_weights(source, target)
    if name in ("attention", "transformer"):
        assert weights.shape == (3, 3)
        assert np.allclose(weights.sum(axis=1), 1)
    else:
        assert weights is None


def test_the_label_is_read_less_often_as_updates_go_on(monkeypatch):
    shape = {**SHAPES["attention"].model_dump(), "teacher_forcing_decay": 10.0}
    made = learner("attention").train()
    made.shape = shape
    forced = []
    whole = made.model.forward
    monkeypatch.setattr(
        made.model,
        "forward",
        lambda *inputs, teacher_forcing: (
            forced.append(teacher_forcing) or whole(*inputs, teacher_forcing=teacher_forcing)
        ),
    )
    for made.updates in (0, 20, 100):
        made(**batch([0]))
    assert forced == sorted(forced, reverse=True)
    assert forced[0] > 0.9
    assert forced[-1] < 0.01


def test_a_kind_that_there_is_not_is_told():
    with pytest.raises(ValueError, match="found 'rnn'; expected recurrent"):
        model.made({"kind": "rnn"}, IDS, 5)


class TestPrompted:
    @given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4))
    def test_tokens_move_to_the_end_in_their_order(self, drawn):
        mask = torch.tensor(drawn).long()
        ids = torch.arange(5).repeat(len(drawn), 1) + 1
        moved, there = prompted.padded_left(ids, mask)
        for row, seen in enumerate(drawn):
            tokens = [at + 1 for at, one in enumerate(seen) if one]
            assert moved[row, 5 - len(tokens) :].tolist() == tokens
            assert there[row].tolist() == [0] * (5 - len(tokens)) + [1] * len(tokens)

    def test_it_is_asked_without_the_reference_and_writes_as_transformers_does(self, tmp_path):
        made = learner("gpt2").float()
        made.save_pretrained(tmp_path)
        theirs = GPT2LMHeadModel.from_pretrained(tmp_path).eval()
        limits = GenerationConfig(
            max_new_tokens=8, do_sample=False, pad_token_id=PAD, eos_token_id=EOS, bos_token_id=BOS
        )
        for at in range(4):
            (source,) = source_ids(tokenizer(), [SOURCES[at]])
            prompt = torch.tensor([[*source[:12].tolist(), BOS]])
            written = theirs.generate(
                prompt, attention_mask=torch.ones_like(prompt), generation_config=limits
            )[0, prompt.shape[1] :].tolist()
            expected = written[: written.index(EOS)] if EOS in written else written
            assert texts(sought(made, [at]))[0][0] == expected

    def test_the_prompt_is_not_learnt(self):
        made, given = learner("gpt2"), batch([0, 1])
        targets = given["labels"].masked_fill(given["labels"] == IGNORED, PAD)
        whole = torch.cat([given["input_ids"][:1, :12], torch.tensor([[BOS]]), targets[:1]], dim=1)
        logits = made.model.gpt2(whole).logits[0].log_softmax(dim=-1)
        count = int((targets[0] != PAD).sum())
        first = [-float(logits[12 + at, int(targets[0, at])].detach()) for at in range(count)]
        alone = made.model.loss(given["input_ids"][:1], given["attention_mask"][:1], targets[:1])
        assert int(given["attention_mask"][0].sum()) == 12
        assert alone.item() == pytest.approx(np.mean(first))
