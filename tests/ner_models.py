"""Small taggers and generators of named entities, trained for three steps."""

import numpy as np
import torch
from transformers import set_seed

from tests import tiny, training_steps
from wxb import tasks
from wxb.core.params.experiments import LowRank
from wxb.corpora.text.encoded import IGNORED, write_columns
from wxb.corpora.text.tokenizers import load, train
from wxb.tasks.ner.models.bio import tag_names

TYPES = ["AGE", "NAME"]
TEXTS = ["Ann is 9 and Bob is 12.", "Zoë is 34"]
TOKENIZERS = {"bert": train("wordpiece", 300, TEXTS), "llama": train("byte-level-bpe", 300, TEXTS)}
IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])

# Method and backbone.
CASES = {
    "tagger-full": ("tagging", "bert"),
    "tagger-lora": ("tagging", "llama"),
    "generator-full": ("generation", "llama"),
}


def experiment(name):
    """The settings of a case; with `full` in its name, all weights are trained."""
    method, backbone = CASES[name]
    lora = LowRank(r=4, alpha=8, dropout=0.1, target_modules=["v_proj", "q_proj", "up_proj"])
    head = {"projection": 12, "dropout": 0.1}
    return training_steps.experiment(
        "ner",
        method,
        backbone=backbone,
        encoding={"max_length": 16, "stride": 4},
        model={} if method == "generation" else {"head": head},
        tuning={"lora": None if "full" in name else lora},
        training={"epochs": 1, "batch_size": 1, "learning_rate": 1e-3},
    )


def save_base(folder, kind):
    """Save a backbone with its tokenizer."""
    size = len(TOKENIZERS[kind])
    if kind == "bert":
        tiny.bert(folder, vocab_size=size)
    else:
        tiny.llama(folder, vocab_size=size, tie_word_embeddings=True, pad_token_id=0)
    TOKENIZERS[kind].save_pretrained(folder)


def trained(folder, name):
    """The predictor of a case after three steps of training."""
    settings = experiment(name)
    backbone = folder / settings.backbone
    method = tasks.get("ner").method(settings.method)(settings, TYPES, load(backbone))
    set_seed(1)
    model = method.new_model(backbone).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        targets = IDS.masked_fill((MASK == 0) | (IDS == 1), IGNORED)
        if settings.method == "generation":
            loss = model(IDS, MASK, targets)["loss"]
        else:
            tags = torch.where(targets == IGNORED, IGNORED, targets % len(tag_names(TYPES)))
            flags = tags.clamp(max=1)
            loss = model(IDS, MASK, tags=tags, starts=flags, ends=flags)["loss"]
        loss.backward()
        optimizer.step()
    targets = folder / "targets.arrow"
    write_columns(targets, {"labels": np.zeros(9, np.int32)}, np.array([0, 9]))
    return method.predictor(model, targets, updates=3, examples=20)
