"""Tiny models with random weights, saved to folders."""

from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, set_seed

SHAPE = {
    "hidden_size": 64,  # quantization to 4 bits uses blocks of 64
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 32,
    "initializer_range": 0.1,
}
SPECIAL = ("pad", "bos", "eos")


def bert(folder, **settings):
    """Save a BERT without head; `settings` change its configuration and must have `vocab_size`."""
    set_seed(0)
    BertModel(BertConfig(**{**SHAPE, **settings})).save_pretrained(folder)
    return folder


def llama(folder, tokenizer=None, **settings):
    """Save a causal language model and its tokenizer, if any; `settings` change the model's."""
    if tokenizer:
        tokenizer.save_pretrained(folder)
        special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in SPECIAL}
        settings |= {"vocab_size": len(tokenizer), "tie_word_embeddings": True, **special}
    set_seed(0)
    config = LlamaConfig(**{**SHAPE, "num_key_value_heads": 2, **settings})
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
