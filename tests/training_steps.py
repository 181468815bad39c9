"""Train a method as the stages tokenize, align and train do."""

from wxb.corpora.text.encoded import write_columns


def train(method, backbone, records, folder):
    """Train on records, validated on the same ones; the predictor, the history, counts of gold.

    Features and targets are written to an existing folder.
    """
    features, targets = folder / "train.arrow", folder / "targets.arrow"
    method.encode([records], features, label="test")
    columns, splits, counts = method.align(features, [records])
    write_columns(targets, columns, splits)
    items = method.dataset(features, targets, records)
    checkpoints = folder / "checkpoints"
    run = method.training_run(items, items, seed=1, checkpoints=checkpoints, label="test")
    model, history = method.fit(backbone, run)
    predictor = method.Predictor.from_training(model, method, targets)
    predictor.calibrate(records, label="test")
    return predictor, history, counts


def saved_and_loaded(predictor, experiment, folder):
    """The predictor after saving it to a new folder and loading it."""
    predictor.save(folder, experiment, updates=0, examples=0)
    return type(predictor).load(folder, experiment.prediction)
