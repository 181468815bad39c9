"""Large libraries are imported only by code that uses them, so that commands start fast."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import ner_models
from tests.commands import printed_by
from tests.project_copy import ROOT

LARGE = (
    "torch",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "scipy.sparse",
    "transformers",
    "peft",
    "bitsandbytes",
    "sklearn",
    "dvc",
    "plotly",
    "rich.markdown",
)
# The large libraries that modules import together; stages import the modules of tasks by name.
EXPECTED = {
    "wxb.cli.app": set(),
    "wxb.cli.new.corpus, wxb.cli.new.studies, wxb.project.doctor, wxb.tasks.classification.tfidf, "
    "wxb.tasks.ner.crf, wxb.tasks.ner.generation, wxb.tasks.ner.tagging, stages.align, "
    "stages.compare, stages.download, stages.evaluate, stages.preprocess, stages.pretrain, "
    "stages.tokenize, stages.tokenizer, stages.train": {"numpy", "pyarrow"},
    "stages.evaluate, wxb.masking.masker, wxb.project.trained, wxb.tasks.ner.models.tagger, "
    "wxb.tasks.ner.tagging, wxb.training.backbones.generator": {"torch", "numpy", "pyarrow"},
}


@pytest.mark.parametrize("modules", EXPECTED, ids=["commands", "without torch", "with torch"])
def test_modules_import_only_the_libraries_that_they_use(modules):
    code = f"import sys, {modules}; print(*({set(LARGE)!r} & sys.modules.keys()))"
    assert {*printed_by(code, ROOT).split()} == EXPECTED[modules]


def test_inputs_are_read_and_features_written_without_pandas(tmp_path):
    """`pa.array`, `pq.read_table` and `feather.write_feather` import pandas if it is installed."""
    pq.write_table(pa.table({"input": ["a"]}), tmp_path / "clean.parquet")
    code = """
import sys
import numpy as np
from pathlib import Path
from wxb.corpora.clean import texts
from wxb.corpora.text.encoded import write_columns
assert texts(Path("clean.parquet"), "input") == ["a"]
write_columns(Path("columns.arrow"), {"ids": np.arange(3)}, np.array([0, 1, 3]))
print("pandas" in sys.modules)
"""
    assert printed_by(code, tmp_path) == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tagger-full", "generator-full"])
def test_prediction_imports_no_training_library_and_no_compiler(tmp_path, name):
    experiment = ner_models.experiment(name)
    ner_models.save_base(tmp_path / experiment.backbone, experiment.backbone)
    predictor = ner_models.trained(tmp_path, name)
    predictor.save(tmp_path / name)
    code = f"""
import sys
from pathlib import Path
from wxb.project import trained
assert len(trained.load(Path("{name}")).predict(["Ann is 9."])) == 1
print(*{{"transformers", "peft", "torch._dynamo", "pandas", "scipy", "sklearn"}} & {{*sys.modules}})
"""
    assert printed_by(code, tmp_path) == "\n"
