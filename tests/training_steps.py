"""Train a method as the stages tokenize, align and train do."""

from wxb.core.params.tasks import experiment_class
from wxb.corpora.text.encoded import write_columns
from wxb.tasks.methods import SplitFiles


def experiment(task, method, **settings):
    """A checked block of `experiments`."""
    names = {"study": "s", "corpus": "c", "task": task, "method": method, "backbone": "b"}
    return experiment_class(task, method).model_validate({**names, **settings})


def encode(method, records, folder, split="train"):
    """Write features and targets to a folder; the path of both, and counts of gold."""
    folder.mkdir(exist_ok=True)
    features, targets = folder / f"{split}.arrow", folder / "targets.arrow"
    method.encode([records], features, caption="test")
    columns, splits, counts = method.targets(features, [records])
    write_columns(targets, columns, splits)
    return features, targets, counts


def train(method, backbone, records, folder):
    """Train on records, validated on the same ones; the predictor, the history, counts of gold."""
    features, targets, counts = encode(method, records, folder)
    split = SplitFiles(features, targets, lambda: records)
    options = {"seed": 1, "checkpoints": folder / "checkpoints", "caption": "test"}
    return *method.train_predictor(backbone, split, split, **options), counts


def saved_and_loaded(predictor, experiment, folder):
    """The predictor after saving it to a new folder and loading it."""
    predictor.save(folder)
    return type(predictor).load(folder, experiment.prediction)
