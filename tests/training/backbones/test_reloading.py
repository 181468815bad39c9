"""Adapters and heads return the same logits in another process, with wxb and with peft alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests import ner_models
from tests.ner_models import IDS, MASK, TOKENIZERS, experiment, save_base, trained

ROOT = Path(__file__).parents[3]
CASES = {name: case for name, case in ner_models.CASES.items() if "lora" in name}
FOUR_BIT = [name for name, (_, _, changes) in CASES.items() if changes.get("four_bit")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all cases, saved in this process and loaded in another."""
    folder = tmp_path_factory.mktemp("models")
    for kind in TOKENIZERS:
        save_base(folder / kind, kind)
    batch = {"input_ids": IDS, "attention_mask": MASK}
    save_file(batch, folder / "batch.safetensors")
    expected = {}
    for name in CASES:
        predictor = trained(folder, name)
        predictor.save(folder / name, experiment(name), updates=3, examples=20)
        model = predictor.model
        with torch.inference_mode():
            logits = (
                model(**batch)
                if hasattr(model, "head")
                else {"logits": model.backbone(**batch).logits}
            )
        for key, values in logits.items():
            expected[f"{name}/{key}"] = values.contiguous()
    save_file(expected, folder / "expected.safetensors")
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("reload.py")), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"},
        check=True,
    )
    return folder


def assert_same(folder, name, loader, tolerance=0.0):
    actual = load_file(folder / f"logits/{name}-{loader}")
    expected = load_file(folder / "expected.safetensors")
    assert actual.keys() == {k.split("/")[1] for k in expected if k.startswith(f"{name}/")}
    for key, values in actual.items():
        torch.testing.assert_close(
            values[MASK == 1],
            expected[f"{name}/{key}"][MASK == 1],
            rtol=tolerance,
            atol=tolerance,
            msg=key,
        )


@pytest.mark.parametrize("name", CASES)
def test_wxb_loads_the_same_logits(folder, name):
    # Adapters in 32 bits are merged, which adds in another order.
    assert_same(folder, name, "wxb", tolerance=0.0 if name in FOUR_BIT else 1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if "bidirectional" not in name])
def test_peft_alone_loads_the_same_logits_bit_for_bit(folder, name):
    assert_same(folder, name, "plain")


@pytest.mark.parametrize("name", FOUR_BIT)
def test_a_loaded_adapter_is_saved_as_the_same_bytes(folder, name):
    again = sorted((folder / "again" / name).iterdir())
    assert "adapter_model.safetensors" in [path.name for path in again]
    for path in again:
        assert path.read_bytes() == (folder / name / path.name).read_bytes(), path.name


def test_cases_differ(folder):
    """If all cases were equal, the tests above would be weak."""
    expected = load_file(folder / "expected.safetensors")
    taggers = [expected[f"{name}/tags"] for name in CASES if name.startswith("tagger")]
    generators = [expected[f"{name}/logits"] for name in CASES if name.startswith("generator")]
    for group in (taggers, generators):
        for index, logits in enumerate(group):
            assert not any(torch.equal(logits, earlier) for earlier in group[:index])
