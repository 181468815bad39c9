"""Small random checkpoints in the layout of public ones, and params.yaml for one of them."""

import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from wxb.core import params

TEXTS = ["Ann moved to Rome in 1990.", "Bob asks: is it far to Oslo?", "It rained.\nNobody knew."]
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 128,
}
SEQ2SEQ = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 128}
# The class, its kind of tokenizer, and settings that are not its defaults.
ARCHITECTURES = {
    "bert": ("BertForMaskedLM", "[CLS] $A [SEP]", {}),
    "roberta": ("RobertaForMaskedLM", "<s> $A </s>", {"pad_token_id": 0}),
    "deberta-v2": (
        "DebertaV2ForMaskedLM",
        "[CLS] $A [SEP]",
        {"relative_attention": True, "position_biased_input": False, "legacy": True},
    ),
    "xlnet": ("XLNetLMHeadModel", "$A <sep> <cls>", {"d_model": 32, "n_layer": 2, "n_head": 4}),
    "t5": ("T5ForConditionalGeneration", "$A </s>", {"d_model": 32, "num_layers": 2, "d_kv": 8}),
    "t5-encoder": ("T5EncoderModel", "$A </s>", {"d_model": 32, "num_layers": 2, "d_kv": 8}),
    "bart": ("BartForConditionalGeneration", "<s> $A </s>", SEQ2SEQ),
    "llama": ("LlamaForCausalLM", "<s> $A", {"num_key_value_heads": 2}),
    "gemma3_text": ("Gemma3ForCausalLM", "<bos> $A", {"num_key_value_heads": 2, "head_dim": 8}),
    "gpt2": ("GPT2LMHeadModel", "$A", {}),
    "gpt_neox": ("GPTNeoXForCausalLM", "$A", {}),
    "olmo2": ("Olmo2ForCausalLM", "$A", {"num_key_value_heads": 2}),
    "qwen2": ("Qwen2ForCausalLM", "$A", {"num_key_value_heads": 2}),
}


def tokenizer(post, *, metaspace=False, size=360):
    """A fast tokenizer in transformers; `post` is its text with the special tokens around it."""
    special = [token for token in post.split() if token != "$A"] or ["<|endoftext|>"]
    backend = Tokenizer(models.BPE())
    kind = pre_tokenizers, decoders
    options = {"prepend_scheme": "first"} if metaspace else {}
    pre, decoder = (getattr(m, "Metaspace" if metaspace else "ByteLevel") for m in kind)
    backend.pre_tokenizer = pre(**options) if metaspace else pre(add_prefix_space=False)
    backend.decoder = decoder(**options)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<pad>", *special],
        initial_alphabet=sorted(set(map(chr, range(32, 127))) | {"\n", "▁"} | {*alphabet}),
        show_progress=False,
    )
    backend.train_from_iterator(TEXTS, trainer)
    if post != "$A":
        ids = [(token, backend.token_to_id(token)) for token in special]
        backend.post_processor = processors.TemplateProcessing(single=post, special_tokens=ids)
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "bos_token": "<s>", "eos_token": "</s>"}
    named = {name: token for name, token in names.items() if token in special}
    if special == ["<|endoftext|>"]:
        named = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    elif "bos_token" in named or special == ["<bos>"]:
        backend.add_special_tokens(["</s>"])
        named = {"bos_token": special[0], "eos_token": "</s>"}
    return hf.PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", **named)


def save(architecture, folder, *, metaspace=False, **changes):
    """Save a checkpoint; `changes` are further settings of its configuration."""
    name, post, settings = ARCHITECTURES[architecture]
    fast = tokenizer(post, metaspace=metaspace)
    cls = getattr(hf, name)
    ids = {key: getattr(fast, key) for key in ("pad_token_id", "bos_token_id", "eos_token_id")}
    shape = {} if "d_model" in settings else SHAPE
    config = cls.config_class(**{"vocab_size": len(fast), **shape, **ids, **settings, **changes})
    hf.set_seed(0)
    cls(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


METHODS = {
    "ner/tagging": {"encoding": {"max_length": 64}, "model": {"head": {"projection": 16}}},
    "ner/generation": {"encoding": {"max_length": 64}},
    "classification/encoder": {"encoding": {"max_length": 64}, "model": {"pooling": "mean"}},
    "classification/prompt": {"encoding": {"max_length": 64, "instruction": "Long or short?"}},
    "chat/sft": {"encoding": {"max_length": 96}, "prediction": {"max_new_tokens": 16}},
    "translation/seq2seq": {
        "encoding": {"max_length": 32},
        "model": {"kind": "transformer", "width": 16, "heads": 2, "layers": 1, "feed_forward": 32},
    },
    "speech/seq2seq": {"encoding": {"window": 1, "mel_bands": 20, "max_length": 24}},
}


def settings(method, checkpoint, *, objective="none", pretraining_length=None, **changes):
    """The parameters of a study with one experiment on a checkpoint, checked."""
    task, name = method.split("/")
    base = {"corpus": "c", "objective": objective, "checkpoint": str(checkpoint)}
    if pretraining_length:
        optimisation = {"steps": 1, "batch_size": 1, "learning_rate": 1e-3}
        base["pretraining"] = {**optimisation, "max_length": pretraining_length}
    training = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3}
    block = {"model": {}, "tuning": {}, "prediction": {}, "training": training, **METHODS[method]}
    for section, values in changes.items():
        block[section] = {**block[section], **values}
    source = {"path": "data.json", "fields": {"id": None}}
    corpus = {"task": task, **source, "split": {"test": 0.25, "valid": 0.25}}
    if task == "ner":
        block["encoding"] = {"stride": 8, **block["encoding"]}
    names = {"study": "s", "corpus": "c", "backbone": "b", "task": task, "method": name}
    return params.check(
        {
            **{"seed": 1, "threads": 1, "portable": False, "lessons": {}},
            "corpora": {"c": corpus},
            "backbones": {"b": base},
            "experiments": {"e": {**names, **block}},
            "studies": {"s": {"task": task, "title": "t", "seed": 1, "experiments": ["e"]}},
        }
    )
