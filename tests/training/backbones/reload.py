"""Load saved models in a separate process, without and with wxb.

`python reload.py FOLDER` writes the logits of every model in the folder to `FOLDER/logits`, as
`<model>-plain` and `<model>-wxb`. It saves the models that wxb loaded to `FOLDER/again/<model>`.
"""

import json
import sys
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch.nn import functional as F  # noqa: N812
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
)


def plain(folder, batch):
    """The logits of a model loaded with transformers and peft, with the head computed here."""
    settings = json.loads((folder / "wxb.json").read_text())
    base = Path(json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"])
    is_generator = settings["method"] == "generation"
    options = {"add_pooling_layer": False} if base.name == "bert" else {}
    if settings["four_bit"]:
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float32,
        )
    cls = AutoModelForCausalLM if is_generator else AutoModel
    backbone = cls.from_pretrained(base, dtype=torch.float32, **options)
    if is_generator:
        backbone.resize_token_embeddings(len(AutoTokenizer.from_pretrained(folder)))
    model = PeftModel.from_pretrained(backbone, folder).eval()
    for module in model.modules():
        # On some CPUs, bitsandbytes would switch to bfloat16 in evaluation.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    if is_generator:
        return {"logits": model(**batch).logits}
    head = load_file(folder / "head.safetensors")

    def linear(name, values):
        return F.linear(values, head[f"{name}.weight"], head[f"{name}.bias"])

    shared = F.gelu(linear("projection", model(**batch).last_hidden_state))
    return {
        "tags": linear("tag", shared),
        "starts": linear("start", shared).squeeze(-1),
        "ends": linear("end", shared).squeeze(-1),
    }


def by_wxb(folder, batch, again):
    """The logits of a model loaded with wxb; saves it to the folder `again`."""
    from wxb import tasks

    settings = json.loads((folder / "wxb.json").read_text())
    task = tasks.get(settings["task"]).method(settings["method"])
    model = task.Predictor.load(folder).model
    assert not model.training
    model.save_pretrained(again)
    if hasattr(model, "head"):
        return model(**batch)
    return {"logits": model.backbone(**batch).logits}


def main(top):
    batch = load_file(top / "batch.safetensors")
    folders = [path.parent for path in sorted(top.glob("*/adapter_config.json"))]
    (top / "logits").mkdir()
    with torch.inference_mode():
        for folder in folders:
            if not json.loads((folder / "wxb.json").read_text()).get("bidirectional"):
                save(plain(folder, batch), top / f"logits/{folder.name}-plain")
        assert not [name for name in sys.modules if name.startswith("wxb")]
        for folder in folders:
            again = top / "again" / folder.name
            save(by_wxb(folder, batch, again), top / f"logits/{folder.name}-wxb")


def save(logits, path):
    save_file({name: values.contiguous() for name, values in logits.items()}, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
