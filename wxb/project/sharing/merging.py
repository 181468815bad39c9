"""Merge an adapter into its backbone: the full model needs neither peft nor the backbone."""

from __future__ import annotations

import shutil
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json, write_json
from wxb.core.pretrained import ADAPTER
from wxb.project import trained

WEIGHTS = ".safetensors"


def merge(experiment: str | Path, output: Path) -> None:
    """Merge a trained adapter, and write the full model to a new folder.

    Its logits are those of the adapter except for rounding. A backbone in 4 bits is dequantized to
    float32. Raises WxbError if the model is not an adapter, or if `output` exists.
    """
    from wxb.training.backbones import tuning

    folder = trained.find(experiment)
    if not (folder / ADAPTER).exists():
        raise WxbError(f"{folder}: expected an adapter, with {ADAPTER}; this is a full model")
    if output.exists():
        raise WxbError(f"{output} already exists; name a new folder")
    model = trained.load(folder).model
    model.backbone = tuning.merge_adapter(model.backbone, folder)
    with publish(output) as (draft,):
        draft.mkdir()
        for file in folder.iterdir():
            if file.is_file() and file.suffix != WEIGHTS and file.name != ADAPTER:
                shutil.copyfile(file, draft / file.name)
        model.save_pretrained(draft)
        write_json(
            draft / paths.SETTINGS, {**read_json(folder / paths.SETTINGS), "four_bit": False}
        )
