"""Every method with every kind of tuning, on native architectures and others, in all stages."""

import json

import pytest

from stages import align, download, evaluate, preprocess, pretrain, tokenize, tokenizer, train
from tests import checkpoints
from wxb.core import compatibility
from wxb.core.files import read_json

NAMES, CITIES = ("Ann", "Bob", "Eve", "Joe", "Kim"), ("Rome", "Oslo", "Lima", "Bonn", "Kyiv")
SENTENCES = [(name, city, f"{name} moved to {city}.") for name in NAMES for city in CITIES]
RECORDS = {
    "ner": [
        {"input": text, "spans": [{"start": 0, "end": len(name), "type": "NAME"}]}
        for name, _, text in SENTENCES
    ],
    "classification": [
        {"input": text, "label": "short" if name < "Cat" else "long"} for name, _, text in SENTENCES
    ],
    "chat": [
        {"instruction": f"Where did {name} move from {city}?", "output": f"To {city}.\nToday."}
        for name, city, _ in SENTENCES
    ],
}
LORA = {"r": 2, "alpha": 4}
TUNINGS = {
    "full": {},
    "frozen": {"frozen": True},
    "lora": {"lora": LORA},
    "qlora": {"lora": LORA, "four_bit": True},
}
ENCODERS, DECODERS = ("bert", "roberta", "t5-encoder"), ("llama", "qwen2", "gpt2")
ARCHITECTURES = {
    "ner/tagging": (*ENCODERS, *DECODERS),
    "ner/generation": DECODERS,
    "classification/encoder": (*ENCODERS, *DECODERS),
    "classification/prompt": DECODERS,
    "chat/sft": DECODERS,
}
MODULES = {name: ["query", "value"] for name in ENCODERS}
MODULES |= {"t5-encoder": ["q", "v"]}
MODULES |= {name: ["q_proj", "v_proj"] for name in DECODERS} | {"gpt2": ["c_attn"]}
CELLS = [
    *((m, name, kind, {}) for m in ARCHITECTURES for name in ARCHITECTURES[m] for kind in TUNINGS),
    *(
        ("ner/tagging", name, kind, {"implementation": "native"})
        for name in ("bert", "llama")
        for kind in ("full", "frozen")
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "name", "kind", "model"), CELLS)
def test_every_method_runs_with_every_tuning(cwd, method, name, kind, model):
    checkpoints.save(name, cwd / "checkpoint")
    (cwd / "data.json").write_text(json.dumps(RECORDS[method.split("/")[0]]))
    tuning = dict(TUNINGS[kind])
    if "lora" in tuning:
        tuning["lora"] = {**LORA, "target_modules": MODULES[name]}
    params = checkpoints.settings(method, "checkpoint", tuning=tuning, model=model)
    compatibility.require_checkpoints(params)
    for stage, block in (
        *((download, "c"), (preprocess, "c"), (tokenizer, "b"), (pretrain, "b")),
        *((tokenize, "e"), (align, "e"), (train, "e"), (evaluate, "e")),
    ):
        stage.main(params, block)
    metrics = read_json(cwd / "reports/metrics/s/e.json")
    assert (metrics["trainable_parameters"] < metrics["parameters"] / 2) >= (kind != "full")
    assert (cwd / "models/e/adapter_config.json").exists() == ("lora" in tuning)
