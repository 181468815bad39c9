"""Adapters merged into native backbones: the same results as with peft, or left to peft."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, set_seed

from tests import tiny
from wxb.core.files import read_json, write_json
from wxb.core.params.experiments import LowRank, Tuning
from wxb.training.backbones import tuning
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.backbones.native import Native
from wxb.training.backbones.size import parameter_count
from wxb.training.backbones.weights import load_backbone

VOCABULARY, NEW = 60, [60, 61, 62]
TOKENS = VOCABULARY + len(NEW)
IDS = torch.tensor([[1, 7, 60, 3, 0, 0], [1, 30, 61, 32, 62, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
PROMPTS, PROMPT_MASK = IDS.flip(1), MASK.flip(1)  # padded on the left
# The modules with matrices of each backbone.
TARGETS = {
    "bert": ["query", "dense"],
    "llama": ["q_proj", "v_proj", "down_proj"],
    "llama-untied": ["q_proj", "v_proj", "down_proj"],
    "gpt2": ["c_attn", "c_fc"],
}

each_generator = pytest.mark.parametrize("base", ["llama", "llama-untied", "gpt2"])


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A folder with backbones that have no new tokens."""
    folder = tmp_path_factory.mktemp("models")
    tiny.bert(folder / "bert", vocab_size=VOCABULARY)
    tiny.llama(folder / "llama", vocab_size=VOCABULARY, tie_word_embeddings=True)
    tiny.llama(folder / "llama-untied", vocab_size=VOCABULARY)
    set_seed(0)
    shape = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "initializer_range": 0.2}
    special = {"bos_token_id": 1, "eos_token_id": 2}
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **shape, **special))
    gpt2.save_pretrained(folder / "gpt2")
    return folder


@pytest.fixture
def folder(bases, request):
    """A new folder beside the backbones."""
    return bases / request.node.name


def adapt(backbone, base, new_tokens=()):
    """An adapter on a backbone, with random matrices and random rows of new tokens."""
    lora = LowRank(r=4, alpha=8, dropout=0.0, target_modules=TARGETS[base])
    task_type = "CAUSAL_LM" if new_tokens else "FEATURE_EXTRACTION"
    adapted = tuning.adapt(
        backbone, Tuning(lora=lora), task_type=task_type, new_tokens=[*new_tokens]
    )
    for name, weight in adapted.named_parameters():
        if "lora_B" in name or "trainable_tokens" in name:
            torch.nn.init.normal_(weight, std=0.2)
    return adapted.eval()


def assert_same_answers(actual, expected):
    """The same logits of tokens, and the same answers with their log-probabilities."""
    with torch.inference_mode():
        logits = [m.backbone(input_ids=IDS, attention_mask=MASK).logits for m in (actual, expected)]
    torch.testing.assert_close(*(values[MASK == 1] for values in logits), rtol=1e-4, atol=1e-5)
    ours, theirs = (
        m.generate(PROMPTS, PROMPT_MASK, max_new_tokens=8, eos=2, pad=0) for m in (actual, expected)
    )
    assert ours.tokens.equal(theirs.tokens)
    torch.testing.assert_close(ours.log_probabilities, theirs.log_probabilities)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("base", ["bert", "llama"])
def test_hidden_states_equal_those_of_peft(bases, folder, base, bidirectional):
    theirs = adapt(load_backbone(bases / base, bidirectional=bidirectional), base)
    tuning.save(theirs, folder)
    ours = Native.from_folder(folder, bidirectional=bidirectional)
    ids = IDS.clamp(max=VOCABULARY - 1)
    with torch.inference_mode():
        actual, expected = (
            m(input_ids=ids, attention_mask=MASK).last_hidden_state[MASK == 1]
            for m in (ours, theirs)
        )
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@each_generator
def test_answers_with_new_tokens_equal_those_of_peft(bases, folder, base):
    theirs = Generator(adapt(language_model(bases / base, tokens=TOKENS), base, NEW))
    theirs.save_pretrained(folder)
    ours = Generator.from_pretrained(folder, tokens=TOKENS)
    assert isinstance(ours.backbone, Native)
    assert_same_answers(ours, theirs)
    for trainable in (False, True):
        assert parameter_count(ours, trainable=trainable) == parameter_count(
            theirs, trainable=trainable
        )
    peft = Generator(tuning.load(folder, lambda base: language_model(base, tokens=TOKENS)).eval())
    assert_same_answers(peft, theirs)


@each_generator
def test_answers_of_full_models_equal_those_of_transformers(bases, folder, base):
    theirs = Generator(language_model(bases / base, tokens=TOKENS)).eval()
    theirs.save_pretrained(folder)
    ours = Generator.from_pretrained(folder, tokens=TOKENS)
    assert isinstance(ours.backbone, Native)
    assert_same_answers(ours, theirs)
    length = "max_position_embeddings"
    assert getattr(ours.backbone.config, length) == getattr(theirs.backbone.config, length) == 32


def test_a_merged_adapter_is_saved_as_a_full_model(bases, folder):
    adapted = Generator(adapt(language_model(bases / "llama", tokens=TOKENS), "llama", NEW))
    adapted.save_pretrained(folder)
    merged = Generator.from_pretrained(folder, tokens=TOKENS)
    full = bases / "full"
    full.mkdir()
    merged.save_pretrained(full)
    assert_same_answers(Generator(language_model(full, tokens=TOKENS)).eval(), adapted)


def adapt_and_save(bases, folder):
    model = adapt(language_model(bases / "llama", tokens=TOKENS), "llama", NEW)
    tuning.save(model, folder)


def without(name):
    """A function that removes the tensors of an adapter with `name` in their names."""

    def change(folder):
        file = folder / "adapter_model.safetensors"
        save_file({k: v for k, v in load_file(file).items() if name not in k}, file)

    return change


def setting(key, value):
    """A function that changes a setting of an adapter."""

    def change(folder):
        file = folder / "adapter_config.json"
        write_json(file, {**read_json(file), key: value})

    return change


@pytest.mark.parametrize(
    "change",
    [
        without("layers.1.self_attn.q_proj"),
        without("lora_B"),
        without("trainable_tokens"),
        setting("target_modules", ["q_proj", "v_proj"]),
        setting("target_modules", ["q_proj", "v_proj", "down_proj", "up_proj"]),
        setting("trainable_token_indices", NEW[1:]),
        setting("trainable_token_indices", [59, 60, 61]),
        setting("trainable_token_indices", [61, 62, 63]),
        setting("trainable_token_indices", None),
        setting("fan_in_fan_out", True),
    ],
)
def test_an_adapter_that_does_not_fit_is_left_to_peft(bases, folder, change):
    adapt_and_save(bases, folder)
    assert Native.from_folder(folder, generative=True, tokens=TOKENS) is not None
    change(folder)
    assert Native.from_folder(folder, generative=True, tokens=TOKENS) is None


def test_a_larger_vocabulary_than_that_of_the_adapter_is_left_to_peft(bases, folder):
    adapt_and_save(bases, folder)
    assert Native.from_folder(folder, generative=True, tokens=TOKENS + 1) is None


def test_rope_of_older_versions_is_left_to_transformers(bases):
    old = tiny.llama(bases / "old", vocab_size=VOCABULARY)
    assert Native.from_folder(old) is not None
    config = read_json(old / "config.json")
    del config["rope_parameters"]
    write_json(old / "config.json", {**config, "rope_theta": 500_000.0})
    assert Native.from_folder(old) is None
    assert load_backbone(old).config.rope_parameters["rope_theta"] == 500_000


@pytest.mark.parametrize("key", ["n_layer", "n_embd", "n_inner"])
def test_a_gpt2_larger_than_its_weights_is_an_error(bases, folder, key):
    language_model(bases / "gpt2", tokens=VOCABULARY).save_pretrained(folder)
    file = folder / "config.json"
    write_json(file, {**read_json(file), key: 10**6})
    with pytest.raises(Exception, match=f"`{key}`: found 1000000; the largest"):
        Generator.from_pretrained(folder, tokens=VOCABULARY)
