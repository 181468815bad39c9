"""Checkpoints that an experiment cannot use are refused before any training."""

import shutil

import pytest
import transformers as hf

from tests import checkpoints
from wxb.core import compatibility
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.corpora.text.tokenizers import load

TAGGING, GENERATION, CHAT = "ner/tagging", "ner/generation", "chat/sft"
CLASSES, TRANSLATION, SPEECH = "classification/encoder", "translation/seq2seq", "speech/seq2seq"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in checkpoints.ARCHITECTURES:
        checkpoints.save(name, folder / name)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """Copy a checkpoint, with changes of its config.json."""

    def copy(name, **changes):
        path = shutil.copytree(saved / name, tmp_path / name)
        write_json(path / "config.json", {**read_json(path / "config.json"), **changes})
        return path

    return copy


def require(method, folder, **changes):
    """Check a checkpoint as the stage `check` does, and then as the stage `tokenizer` does."""
    settings = checkpoints.settings(method, folder, **changes)
    compatibility.require_checkpoints(settings)
    compatibility.require(settings, "b", folder, load(folder))


@pytest.mark.parametrize("name", checkpoints.ARCHITECTURES)
def test_each_method_takes_its_architectures(saved, name):
    has_two_stacks = name in ("t5", "bart")
    encoders = ("bert", "roberta", "deberta-v2", "xlnet", "t5-encoder")
    is_causal = not has_two_stacks and name not in encoders
    fits = {
        **dict.fromkeys((TAGGING, CLASSES), not has_two_stacks),
        **dict.fromkeys((GENERATION, CHAT), is_causal),
        TRANSLATION: not has_two_stacks,
        SPEECH: False,
    }
    for method, is_accepted in fits.items():
        if is_accepted:
            require(method, saved / name)
        else:
            with pytest.raises(WxbError, match=r"^experiments\.e\.method: found "):
                require(method, saved / name)
    for objective, is_accepted in (("mlm+nsp", name == "bert"), ("causal-lm", is_causal)):
        fault = r"pretraining\.max_length: found 129" if is_accepted else "objective: found "
        with pytest.raises(WxbError, match=rf"^backbones\.b\.{fault}"):
            require(TRANSLATION, saved / name, objective=objective, pretraining_length=129)


@pytest.mark.parametrize(
    ("name", "longest"), [("bert", 128), ("roberta", 127), ("llama", 128), ("gpt2", 128)]
)
def test_max_length_is_at_most_the_positions(saved, name, longest):
    require(TAGGING, saved / name, encoding={"max_length": longest})
    with pytest.raises(WxbError, match=rf"encoding\.max_length: found {longest + 1} tokens.*128|7"):
        require(TAGGING, saved / name, encoding={"max_length": longest + 1})


def test_a_reply_leaves_room_for_its_prompt(saved):
    require(CHAT, saved / "llama", prediction={"max_new_tokens": 127})
    with pytest.raises(WxbError, match=r"prediction\.max_new_tokens: found 129 tokens"):
        require(CHAT, saved / "llama", prediction={"max_new_tokens": 128})


def test_relative_positions_have_no_limit(saved):
    require(TAGGING, saved / "deberta-v2", encoding={"max_length": 4000})
    require(TAGGING, saved / "xlnet", encoding={"max_length": 4000})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "'gptq'"),
        ({"quantization_config": {"load_in_4bit": True}}, "'bitsandbytes'"),
        ({"model_type": "gemma3", "text_config": {"vocab_size": 9}}, "'gemma3'"),
        ({"model_type": "vit", "vocab_size": None}, "'vit'"),
    ],
)
def test_quantized_and_multimodal_checkpoints_are_refused(copy, change, message):
    with pytest.raises(WxbError, match=rf"backbones\.b\.checkpoint: found .*{message}"):
        require(CHAT, copy("llama", **change))


def test_a_checkpoint_of_the_hub_needs_a_commit(cwd):
    """Else a mistyped folder is looked for on the hub, and results depend on the day."""
    settings = checkpoints.settings(TAGGING, "models/bert")
    with pytest.raises(WxbError, match=r"^models/bert: no such file or folder; correct"):
        compatibility.require_checkpoints(settings)
    pinned = settings.backbones["b"].model_copy(update={"revision": "a" * 40})
    compatibility.require_checkpoints(settings.model_copy(update={"backbones": {"b": pinned}}))


def test_keys_of_a_configuration_may_be_unlisted_or_missing(copy):
    folder = copy("llama", _model_name_or_path="some/name", architectures=None)
    require(TAGGING, folder)
    with pytest.raises(WxbError, match="found no `architectures` in config"):
        require(CHAT, folder)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_checkpoint_needs_its_own_tokenizer(copy, name):
    folder = copy(name)
    for file in folder.glob("token*"):
        file.unlink()
    with pytest.raises(WxbError, match="found no tokenizer"):
        compatibility.require_checkpoints(checkpoints.settings(TAGGING, folder))


def test_an_added_special_token_may_exceed_the_embedding(copy):
    tokenizer = hf.AutoTokenizer.from_pretrained(folder := copy("llama"))
    tokenizer.add_special_tokens({"pad_token": "[PADDING]"})
    tokenizer.save_pretrained(folder)
    require(CHAT, folder)


def test_a_tokenizer_needs_padding_and_offsets(copy):
    folder = copy("llama")
    file, without = folder / "tokenizer_config.json", ("pad_token", "eos_token")
    write_json(file, {k: v for k, v in read_json(file).items() if k not in without})
    with pytest.raises(WxbError, match="expected a `pad_token` or an `eos_token`"):
        require(TAGGING, folder)
    (folder / "tokenizer.json").rename(folder / "tokenizer.model")  # as sentencepiece saves it
    without_offsets = r"found no tokenizer\.json, .*; save it by AutoTokenizer"
    with pytest.raises(WxbError, match=without_offsets):
        require(TAGGING, folder)
    (folder / "tokenizer.model").rename(folder / "bpe.codes")
    (folder / "vocab.txt").write_text("the 1")
    write_json(file, {"tokenizer_class": "BertweetTokenizer"})  # which is slow
    with pytest.raises(WxbError, match=without_offsets):
        require(TAGGING, folder)


@pytest.mark.parametrize("vocabulary", [300, 2000])
def test_the_vocabularies_of_tokenizer_and_model_are_compared(copy, vocabulary):
    with pytest.raises(WxbError, match=rf"ids up to \d+, and `vocab_size` {vocabulary}"):
        require(TAGGING, copy("bert", vocab_size=vocabulary))


def test_an_adapter_is_no_checkpoint(copy):
    folder = copy("llama")
    (folder / "adapter_config.json").write_text("{}")
    for file in ("model.safetensors", "config.json", "tokenizer.json"):  # with them, then without
        with pytest.raises(WxbError, match="found an adapter"):
            require(CHAT, folder)
        (folder / file).unlink()


def test_a_tokenizer_gives_the_tokens_of_tokenizer_json(copy):
    """transformers may build it by the defaults of its class instead."""
    folder, lower_case = copy("gpt2"), {"normalizer": {"type": "Lowercase"}}
    file, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    write_json(file, {**read_json(file), **lower_case})
    require(TAGGING, folder)
    write_json(settings, {**read_json(settings), "tokenizer_class": "GPT2Tokenizer"})
    with pytest.raises(WxbError, match=r"checkpoint: found other tokens .*GPT2Tokenizer"):
        require(TAGGING, folder)


def test_a_vocabulary_with_capitals_needs_them(copy):
    """transformers reads a vocab.txt in lower case by default."""
    folder = copy("bert")
    for file in folder.glob("token*"):
        file.unlink()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    size = read_json(folder / "config.json")["vocab_size"]
    words = [f"{'Aa'[n % 2]}{n}" for n in range(size - len(special))]
    (folder / "vocab.txt").write_text("\n".join([*special, *words]))
    with pytest.raises(WxbError, match=r"a tokenizer in lower case, and \d+ tokens with capitals"):
        require(TAGGING, folder)
    write_json(folder / "tokenizer_config.json", {"do_lower_case": False})
    require(TAGGING, folder)


@pytest.mark.parametrize("method", [TAGGING, CHAT])
def test_all_target_modules_of_lora_exist(saved, method):
    def lora(*names):
        return {"lora": {"r": 2, "alpha": 4, "target_modules": [*names]}}

    require(method, saved / "llama", tuning=lora("q_proj", "self_attn.v_proj"))
    for wrong in ("query", "_proj", "self_attn", "lm_head"):
        with pytest.raises(WxbError, match=rf"target_modules: found {wrong}; .*q_proj"):
            require(method, saved / "llama", tuning=lora("q_proj", wrong))


def test_a_native_architecture_is_that_of_the_weights(saved):
    native = {"model": {"implementation": "native"}}
    require(TAGGING, saved / "llama", **native)
    expected = r"model\.implementation: found native, and weights of 'gpt2'; expected bert or llama"
    with pytest.raises(WxbError, match=expected):
        require(TAGGING, saved / "gpt2", **native)


@pytest.mark.parametrize("is_multilingual", [True, False])
def test_a_multilingual_whisper_needs_a_language(tmp_path, is_multilingual):
    sizes = {"vocab_size": 400, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = hf.WhisperConfig(
        **sizes, **heads, num_mel_bins=20, max_source_positions=50, max_target_positions=28
    )
    config.pad_token_id = config.bos_token_id = config.eos_token_id = 1
    config.decoder_start_token_id, config.suppress_tokens = 1, None
    model = hf.WhisperForConditionalGeneration(config)
    model.generation_config.is_multilingual = is_multilingual
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").touch()
    fits, wrong = ("zh", None) if is_multilingual else (None, "zh")

    def check(**encoding):
        settings = checkpoints.settings(SPEECH, tmp_path, encoding=encoding)
        compatibility.require(settings, "b", tmp_path)

    check(language=fits, max_length=24)
    for changes, key in (
        ({"language": wrong}, "language"),
        ({"language": fits, "max_length": 27}, "max_length"),
        ({"language": fits, "window": 2}, "window"),
        ({"language": fits, "mel_bands": 80}, "mel_bands"),
    ):
        with pytest.raises(WxbError, match=rf"^experiments\.e\.encoding\.{key}: found "):
            check(**changes)
