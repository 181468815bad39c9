"""What starts fast stays fast: nothing heavy is imported where it is not used."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "peft", "bitsandbytes", "sklearn", "dvc", "plotly")
# What each imports of these; the modules of tasks as the stages import them, by name.
USED = {
    "wxb": set(),
    "wxb.cli.app": set(),
    "wxb.cli.new.corpus, wxb.cli.new.studies": set(),
    "stages.download, stages.preprocess": set(),
    "stages.tokenize": set(),
    "stages.align, wxb.tasks.ner.tagging.method, wxb.tasks.ner.generation.method": set(),
    "stages.compare": set(),
    "stages.tokenizer, stages.pretrain": set(),
    "stages.train, stages.evaluate, wxb.tasks.classification.tfidf.method": set(),
    "stages.evaluate, wxb.tasks.ner.tagging.method, wxb.tasks.ner.tagging.model": {"torch"},
    "wxb.project.trained, wxb.masking.masker, "
    "wxb.tasks.ner.tagging.method, wxb.tasks.ner.tagging.model": {"torch"},
}


@pytest.mark.parametrize("modules", USED)
def test_imports_only_what_it_uses(modules):
    code = f"import sys, {modules}; print(*({set(HEAVY)!r} & sys.modules.keys()))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {*shown.stdout.split()} == USED[modules]
