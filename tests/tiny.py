"""Tiny models with random weights, as folders to load from."""

from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, set_seed

SHAPE = {
    "hidden_size": 64,  # weights in 4 bits share a scale by blocks of 64
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 32,
    "initializer_range": 0.1,
}


def bert(folder, **settings):
    """Save a body; `settings` are those of its configuration, with the size of its vocabulary."""
    set_seed(0)
    BertModel(BertConfig(**{**SHAPE, **settings})).save_pretrained(folder)
    return folder


def llama(folder, **settings):
    """Save a language model, with an output table of its own unless `tie_word_embeddings`."""
    set_seed(0)
    config = LlamaConfig(**{**SHAPE, "num_key_value_heads": 2, **settings})
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
