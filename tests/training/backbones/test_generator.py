"""The generator: loss and answers equal those of transformers."""

import numpy as np
import pytest
import torch
from transformers import (
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    set_seed,
)

from tests import tiny
from tests.models.equal import SINGLE, difference
from wxb.core.params.experiments import LowRank, Tuning
from wxb.corpora.text.encoded import IGNORED
from wxb.models.decoding import MIN_SHARED
from wxb.training.backbones import tuning
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.batches import collate

PAD, BEGIN, END, VOCABULARY = 0, 1, 2, 40
LONGEST = 12
# Prompts and answers of different lengths.
ROWS = [([1, 7, 9, 3], [11, 12, 2]), ([1, 30], [31, 32, 33, 34, 2]), ([1, 5, 6, 8, 4, 3], [2])]
PROMPTS = [[1, 7, 9, 3], [1, 30], [1, 5, 6, 8, 4, 3], [1], [1, 14, 15, 16, 17, 18, 19]]
START = [1, *range(20, 20 + MIN_SHARED)]  # of prompts that share one
LORA = LowRank(r=4, alpha=8, dropout=0.0, target_modules=["q_proj", "v_proj"])
KINDS = {"full": Tuning(), "lora": Tuning(lora=LORA), "qlora": Tuning(lora=LORA, four_bit=True)}

each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    special = {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END}
    size = {"vocab_size": VOCABULARY, "initializer_range": 0.15}
    tiny.llama(folder / "llama", **size, tie_word_embeddings=True, **special)
    return folder


def generator(models, kind="full", vocabulary=VOCABULARY):
    set_seed(1)
    backbone = language_model(
        models / "llama", vocabulary=vocabulary, four_bit=KINDS[kind].four_bit
    )
    model = Generator(tuning.adapt(backbone, KINDS[kind], task_type="CAUSAL_LM"))
    for name, matrix in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(matrix, std=0.1)  # zero at first, without effect
    return model.eval()


def batch_of(rows):
    """Ids, mask and labels on the answers, padded on the right."""
    ids = [np.array(prompt + answer) for prompt, answer in rows]
    labels = [np.array([IGNORED] * len(prompt) + answer) for prompt, answer in rows]
    items = [{"input_ids": i, "labels": own} for i, own in zip(ids, labels, strict=True)]
    batch = collate(items, PAD)
    return batch["input_ids"], batch["attention_mask"], batch["labels"]


def prompts_of(prompts, margin=0, pad=PAD):
    """Ids and mask, padded on the left."""
    width = max(map(len, prompts)) + margin
    ids = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    return ids, mask


# Training


@each_kind
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[1:]])
def test_loss_logits_and_gradients_equal_transformers(models, kind, rows):
    model, (ids, mask, labels) = generator(models, kind), batch_of(rows)
    actual = model(ids, mask, labels)
    expected = model.backbone(input_ids=ids, attention_mask=mask, labels=labels)
    assert difference([actual["loss"]], [expected.loss]) <= SINGLE
    logits = expected.logits[:, :-1][labels[:, 1:] != IGNORED]
    assert difference([actual["logits"]], [logits]) <= SINGLE
    trainable = [p for p in model.parameters() if p.requires_grad]
    slopes = (torch.autograd.grad(loss, trainable) for loss in (actual["loss"], expected.loss))
    assert difference(*slopes) <= 2 * SINGLE


@each_kind
@pytest.mark.parametrize(("start", "margin"), [([], 0), ([], 3), (START, 0), (START, 3)])
@pytest.mark.parametrize("pad", [PAD, PROMPTS[0][1], None], ids=["padding", "prompt", "end"])
def test_answers_equal_transformers(models, kind, start, margin, pad):
    model, (ids, mask) = generator(models, kind), prompts_of([start + p for p in PROMPTS], margin)
    options = {"max_new_tokens": LONGEST, "pad": PAD}
    free, _ = model.generate(ids, mask, eos=-1, **options)
    end = int(free[0, 2])  # so that answers end early, late or not at all
    pad = end if pad is None else pad
    ids = ids.where(mask.bool(), pad)
    actual, logs = model.generate(ids, mask, max_new_tokens=LONGEST, eos=end, pad=pad)
    stop = {"max_new_tokens": LONGEST, "eos_token_id": end, "pad_token_id": pad}
    logits = {"return_dict_in_generate": True, "output_logits": True}
    expected = model.backbone.generate(input_ids=ids, attention_mask=mask, **stop, **logits)
    assert actual.equal(expected.sequences[:, ids.shape[1] :])
    lengths = {row.index(end) if end in row else LONGEST for row in actual.tolist()}
    assert len(lengths) > 1
    scores = torch.stack(expected.logits, dim=1).log_softmax(-1)
    expected_logs = scores.gather(-1, actual[:, :, None]).squeeze(-1)
    # Matrices of other sizes, as rows that have ended are left out, are added in another order.
    torch.testing.assert_close(logs, expected_logs.masked_fill(logs == 0, 0))


@pytest.mark.parametrize(
    "family", [(MambaConfig, MambaForCausalLM), (MistralConfig, MistralForCausalLM)]
)
def test_answers_of_recurrence_and_of_a_sliding_window_equal_transformers(family):
    set_seed(1)
    shape = {"vocab_size": VOCABULARY, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 8}
    config = family[0](**shape, **heads, intermediate_size=32, initializer_range=0.5)
    model = family[1](config).eval()
    ids, mask = prompts_of([START + prompt for prompt in PROMPTS])
    stop = {"eos_token_id": END, "pad_token_id": PAD}
    expected = model.generate(ids, attention_mask=mask, max_new_tokens=LONGEST, **stop)
    lengths = []
    embedding = model.get_input_embeddings()
    embedding.register_forward_hook(lambda _, x, __: lengths.append(x[0].shape[1]))
    actual, _ = Generator(model).generate(ids, mask, max_new_tokens=LONGEST, eos=END, pad=PAD)
    assert actual.equal(expected[:, ids.shape[1] :])
    assert lengths == [ids.shape[1]] + [1] * (actual.shape[1] - 1)  # only new tokens are read


def test_generation_settings_of_a_checkpoint_are_ignored(models, tmp_path):
    checkpoint = language_model(models / "llama", vocabulary=VOCABULARY)
    checkpoint.generation_config.update(do_sample=True, temperature=9.0, repetition_penalty=5.0)
    checkpoint.save_pretrained(tmp_path / "sampling")
    model = generator(models)
    sampling = Generator(language_model(tmp_path / "sampling", vocabulary=VOCABULARY)).eval()
    ids, mask = prompts_of(PROMPTS)
    options = {"max_new_tokens": LONGEST, "eos": END, "pad": PAD}
    results = (each.generate(ids, mask, **options) for each in (sampling, model))
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


# Loading


def test_an_extended_vocabulary_keeps_its_old_rows(models, tmp_path):
    model = generator(models, vocabulary=VOCABULARY + 3)
    old = generator(models).backbone.get_input_embeddings().weight
    new = model.backbone.get_input_embeddings().weight
    assert new.shape == (VOCABULARY + 3, 64)
    assert torch.equal(new[:VOCABULARY], old)
    assert model.backbone.get_output_embeddings().weight is new
    model.save_pretrained(tmp_path)
    loaded = Generator.from_pretrained(tmp_path, vocabulary=VOCABULARY + 3)
    assert torch.equal(loaded.backbone.get_input_embeddings().weight, new)
    assert loaded.backbone.get_output_embeddings().weight.shape == new.shape
