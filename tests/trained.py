"""A project with a really trained model."""

import shutil
from functools import partial
from pathlib import Path

from transformers import set_seed

from tests import tiny
from wxb.backbones.size import parameters
from wxb.corpora.profile import profile
from wxb.corpora.records import Record
from wxb.files import write_json
from wxb.params.experiments import Experiment, Head
from wxb.params.training import Training
from wxb.tasks.ner import evaluation
from wxb.tasks.ner.spans import Span
from wxb.tasks.ner.tagging import method
from wxb.text.encoded import write_columns, write_encoded
from wxb.text.tokenizers import encode, train
from wxb.text.windows import over
from wxb.training.batches import collate
from wxb.training.trainer import fit

ROOT = Path(__file__).parents[1]
NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
SECOND = ("Lee", "Roe", "Fox")
SENTENCES = [(f"Yesterday {a} {b} said hello.", f"{a} {b}") for a in NAMES for b in SECOND]
EXPERIMENT = Experiment(
    study="ner",
    corpus="pii",
    task="ner",
    method="tagging",
    backbone="encoder",
    max_length=24,
    stride=8,
    head=Head(projection=16, dropout=0.0),
    generation=None,
    training=Training(epochs=6, batch_size=4, learning_rate=3e-3),
)


def project(folder):
    """Make a project with a trained experiment, ner-encoder, which finds the names it was shown."""
    shutil.copy(ROOT / "params.yaml", folder)
    texts = [text for text, _ in SENTENCES]
    records = [
        Record(text, text, (Span(text.index(name), text.index(name) + 7, "NAME"),), None, "")
        for text, name in SENTENCES
    ]
    (folder / "data/clean/pii").mkdir(parents=True)
    splits = {"train": records[:16], "valid": records[16:], "test": records}
    write_json(folder / "data/clean/pii/profile.json", profile(splits, []))
    tokenizer = train("wordpiece", 400, texts)
    backbone = tiny.bert(folder / "bert", vocab_size=len(tokenizer))
    encoded = encode(tokenizer, texts)
    windows = over(encoded, tokenizer, max_length=24, stride=8)
    columns, lengths, _ = method.aligned(encoded, windows, records, ["NAME"], tokenizer)
    write_encoded(folder / "features", encoded)
    write_columns(folder / "targets", columns, lengths)
    files = (folder / "features", folder / "targets", tokenizer, texts, EXPERIMENT)
    items = method.dataset(*files)
    set_seed(0)
    model = method.build(backbone, ["NAME"], EXPERIMENT, tokenizer)
    fit(
        model,
        EXPERIMENT.training,
        train=items,
        valid=items,
        collate=partial(collate, pad=tokenizer.pad_token_id),
        targets=method.TARGETS,
        figures=method.figures,
        summarize=method.summarize,
        best=method.BEST,
        seed=1,
        checkpoints=folder / "checkpoints",
        label="test",
    )
    predictor = method.Predictor.of(model, tokenizer, ["NAME"], EXPERIMENT, Path("unread"))
    (folder / "models/ner-encoder").mkdir(parents=True)
    predictor.save(folder / "models/ner-encoder", EXPERIMENT, updates=3, examples=20)
    judged = [
        evaluation.Judged(
            r.id, r.text, r.spans, tuple(s.span for s in row), tuple(s.score for s in row)
        )
        for r, row in zip(records, predictor.predict(texts), strict=True)
    ]
    evaluation.write(folder / "reports/predictions/ner/ner-encoder", judged)
    write_json(
        folder / "reports/metrics/ner/ner-encoder.json",
        {
            **evaluation.metrics([judged], resamples=50, seed=1),
            "parameters": parameters(model),
            "trainable_parameters": parameters(model, trainable=True),
        },
    )
    return folder
