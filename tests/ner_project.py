"""A project with a trained NER model."""

from tests import demo, tiny, training_steps
from wxb.core import paths
from wxb.core.files import write_json
from wxb.corpora import clean
from wxb.corpora.profile import profile
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import train
from wxb.metrics import evaluation
from wxb.tasks.ner import metrics
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import LABELLING, Span
from wxb.tasks.ner.tagging import TaggingMethod

NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
SECOND = ("Lee", "Roe", "Fox")
SENTENCES = [(f"Yesterday {a} {b} said hello.", f"{a} {b}") for a in NAMES for b in SECOND]
RECORDS = [
    Record(text, text, (Span(text.index(name), text.index(name) + 7, "NAME"),), None, "")
    for text, name in SENTENCES
]
EXPERIMENT = training_steps.experiment(
    "ner",
    "tagging",
    encoding={"max_length": 24, "stride": 8},
    model={"head": {"projection": 16, "dropout": 0.0}},
    training={"epochs": 6, "batch_size": 4, "learning_rate": 3e-3},
)


def without_scores(rows):
    return [[scored.span for scored in row] for row in rows]


def write_corpus(folder, splits):
    """Write a clean corpus: the records of each split, and the profile."""
    for name, members in splits.items():
        clean.write(clean.split_file(folder, name), members, LABELLING)
    facts = {"test_groups": dict.fromkeys(splits), "fields_not_read": {}}
    contents = {**profile(splits, [], Reading()), **facts}
    write_json(folder / paths.PROFILE, contents)
    write_json(folder / paths.TRAINING_DATA / paths.LABELS, contents["labels"])


def create_project(folder):
    """Create a project with a trained experiment, ner-encoder, which finds its training names."""
    demo.write(folder)
    texts = [text for text, _ in SENTENCES]
    splits = {"train": RECORDS[:16], "valid": RECORDS[16:], "test": RECORDS}
    write_corpus(folder / "data/clean/pii", splits)
    tokenizer = train("wordpiece", 400, texts)
    backbone = tiny.bert(folder / "bert", vocab_size=len(tokenizer))
    method = TaggingMethod(EXPERIMENT, ["NAME"], tokenizer)
    predictor, _, _ = training_steps.train(method, backbone, RECORDS, folder / "work")
    (folder / "models/ner-encoder").mkdir(parents=True)
    predictor.save(folder / "models/ner-encoder")
    scorer = metrics.Scorer()
    rows = scorer.rows(RECORDS, predictor.predict(texts), set())
    evaluation.save_predictions(scorer, folder / "reports/predictions/ner/ner-encoder", rows)
    scores = evaluation.metrics(scorer, evaluation.evaluate(scorer, [rows]))
    sizes = {"parameters": predictor.size(), "trainable_parameters": predictor.size(trainable=True)}
    write_json(folder / "reports/metrics/ner/ner-encoder.json", scores | sizes)
    return folder
