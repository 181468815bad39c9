"""An adapter made one with its backbone: a model that needs neither peft nor a folder beside it."""

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
    """Write a trained adapter's model whole to a new folder, as any other trained experiment's.

    It gives the adapter's logits but for rounding; a backbone in 4 bits is written with the values
    that these stand for, in float32. Raises WxbError where there is no adapter, or `output` exists.
    """
    from wxb.training.backbones import tuning

    folder = trained.find(experiment)
    if not (folder / ADAPTER).exists():
        raise WxbError(f"{folder}: found a whole model; expected an adapter, which has {ADAPTER}")
    if output.exists():
        raise WxbError(f"{output}: is there already; name a new folder")
    model = trained.load(folder).model
    model.backbone = tuning.merged(model.backbone, folder)
    with publish(output) as (draft,):
        draft.mkdir()
        for file in folder.iterdir():
            if file.is_file() and file.suffix != WEIGHTS and file.name != ADAPTER:
                shutil.copyfile(file, draft / file.name)
        model.save_pretrained(draft)
        write_json(
            draft / paths.SETTINGS, {**read_json(folder / paths.SETTINGS), "four_bit": False}
        )
