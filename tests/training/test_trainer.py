"""`fit`: determinism, resuming, schedules, early stopping and checkpoints."""

import shutil
import weakref
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F  # noqa: N812
from transformers import set_seed

from tests import tiny
from wxb.core.errors import WxbError
from wxb.core.params.experiments import LowRank, Tuning
from wxb.core.params.training import Pretraining, Training
from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.ner.generation import GenerationMethod
from wxb.training.backbones import tuning
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.batches import collate
from wxb.training.checkpoints import seal
from wxb.training.curves import write_curves
from wxb.training.trainer import fit

RATE = 1e-2


class PowerError(Exception):
    """Simulates a kill."""


class Linear(nn.Module):
    """A minimal model with randomness in training (dropout)."""

    def __init__(self):
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 3), nn.Dropout(0.5)

    def forward(self, input_ids, labels):
        logits = self.layer(self.dropout(input_ids))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


def points(count, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 4)).astype(np.float32)
    return [{"input_ids": v, "labels": int(v[0] > 0)} for v in values]


def stack(items):
    return {name: torch.tensor(np.array([item[name] for item in items])) for name in items[0]}


class Scripted:
    """Metrics function that returns given F1 scores, or raises at evaluation `stop_at`."""

    def __init__(self, scores, *, begin=0, stop_at=None):
        self.scores, self.index, self.stop_at = scores, begin, stop_at

    def __call__(self, result):
        if self.index == self.stop_at:
            raise PowerError
        self.index += 1
        return {"f1": self.scores[self.index - 1]}


def fit_items(model, settings, folder, train, valid, **options):
    """Train a model with the metric `f1`, if `compute_metrics` is given; its history."""
    options = {"collate": stack, "seed": 3, "caption": "test", **options}
    if options.get("compute_metrics"):
        options.setdefault("metric", "f1")
    return fit(model, settings, train, valid, checkpoints=folder, **options)


def fit_linear(folder, settings, compute_metrics=None, records=16):
    set_seed(3)
    model = Linear()
    items = points(records), points(8, seed=1)
    return model, fit_items(model, settings, folder, *items, compute_metrics=compute_metrics)


def training(**changes):
    settings = {"epochs": 4, "batch_size": 4, "learning_rate": RATE, "warmup_ratio": 0.0}
    return Training(**{**settings, **changes})


def same_weights(a, b):
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def set_bfloat16(monkeypatch, is_present, kernels="AVX512"):
    """Let torch say that this CPU has instructions for bfloat16, or that it has none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: kernels)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": is_present})


@pytest.mark.parametrize("is_trained", [True, False])
def test_a_trained_model_computes_in_float32(tmp_path, is_trained, monkeypatch):
    set_bfloat16(monkeypatch, is_present=True)
    model, items = Linear().requires_grad_(is_trained), (points(16), points(8, seed=1))
    fit_items(model, training(bf16=True), tmp_path, *items, compute_metrics=Scripted([0.5] * 4))
    batch = stack(items[1])
    assert torch.equal(model(**batch)["logits"], Linear.forward(model, **batch)["logits"])
    reference = weakref.ref(model)
    del model
    assert reference() is None  # the next model needs its memory


@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.parametrize("is_present", [True, False])
@pytest.mark.parametrize("kernels", ["AVX512", "AVX2"])  # the second by `portable`
def test_bfloat16_is_multiplied_if_set_and_present(
    tmp_path, monkeypatch, bf16, is_present, kernels
):
    set_bfloat16(monkeypatch, is_present, kernels)
    settings = {"steps": 2, "batch_size": 4, "learning_rate": RATE, "max_length": 8}
    model, types = Linear(), set()
    model.layer.register_forward_hook(lambda *call: types.add(call[-1].dtype))
    items = points(16), points(8, seed=1)
    fit_items(model, Pretraining(checkpoints=1, bf16=bf16, **settings), tmp_path, *items)
    is_used = bf16 and is_present and kernels == "AVX512"
    assert types == {torch.bfloat16 if is_used else torch.float32}
    assert model.layer.weight.dtype == torch.float32


def test_a_model_without_trainable_weights_is_only_evaluated(tmp_path):
    model = Linear().requires_grad_(False)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    items = points(16), points(8, seed=1)
    (row,) = fit_items(model, training(), tmp_path, *items, compute_metrics=Scripted([0.5]))
    assert (row["step"], row["epoch"], row["valid_f1"]) == (0, 0, 0.5)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert row.keys() == {"step", "epoch", "valid_loss", "valid_f1"}  # no timings


class Counter(Linear):
    """Records its `updates` at every step, and the lengths of labels of every batch."""

    updates = 0

    def __init__(self):
        super().__init__()
        self.steps, self.batches = [], []

    def forward(self, input_ids, labels):
        if self.training:
            self.steps.append(self.updates)
            self.batches.append([len(row) for row in labels])
        return {"loss": self.layer(torch.ones(1, 4)).sum(), "logits": torch.zeros(len(labels))}


def ragged(items):
    return {name: [torch.tensor(item[name]) for item in items] for name in items[0]}


def fit_counter(folder, lengths, **changes):
    model = Counter()
    items = [{"input_ids": [0] * first, "labels": [0] * then} for first, then in lengths]
    scores = Scripted([0.1] * 9)
    options = {"collate": ragged, "compute_metrics": scores}
    fit_items(model, training(**changes), folder, items, items[:4], **options)
    return model


def test_updates_of_a_model_are_set_at_every_step(tmp_path):
    assert fit_counter(tmp_path, [(1, 1)] * 8, epochs=2).steps == [0, 1, 2, 3]


def test_batches_are_grouped_by_the_lengths_of_labels_too(tmp_path):
    lengths = [(5, n % 4 + 1) for n in range(64)]
    batches = fit_counter(tmp_path, lengths, epochs=1).batches
    # The sampler swaps the longest item with the first one.
    assert sum(max(batch) - min(batch) > 1 for batch in batches) <= 2 < len(batches)


# Early stopping and the best checkpoint


@pytest.mark.parametrize(("count", "on_all"), [(16, True), (13, False)])
def test_accumulated_batches_make_the_update_of_one_batch(tmp_path, llama, count, on_all):
    """With answers of two lengths, and a shorter last batch."""
    rng = np.random.default_rng(0)
    items = []
    for index in range(count):
        ids = rng.integers(3, 40, 20 if index % 2 else 9)
        labels = ids if on_all else np.where(np.arange(len(ids)) < 6, IGNORED, ids)
        items.append({"input_ids": ids, "labels": labels})
    results = []
    for size, accumulation in ((16, 1), (8, 2), (4, 4)):
        set_seed(0)
        model = Generator(language_model(llama, vocabulary=40))
        settings = training(epochs=1, batch_size=size, gradient_accumulation=accumulation)
        folder = tmp_path / f"{size}"
        options = {"seed": 0, "checkpoints": folder, "caption": "fit", "metric": "loss"}
        history = fit(model, settings, items, items, collate=partial(collate, pad=0), **options)
        row = {key: value for row in history for key, value in row.items()}
        results.append([row["loss"], row["grad_norm"]])
    for result in results[1:]:
        assert result == pytest.approx(results[0], rel=1e-5)


@pytest.mark.parametrize("spoiled", ["gradient", "weights"])
def test_a_last_update_without_numbers_is_an_error(tmp_path, monkeypatch, spoiled):
    set_seed(3)
    model = Linear()
    if spoiled == "gradient":
        model.layer.weight.register_hook(lambda gradient: gradient * torch.nan)
    else:

        def spoil(*_, **__):
            model.layer.weight.data.mul_(torch.nan)

        name = "wxb.training.trainer._ProgressCallback.on_pre_optimizer_step"
        monkeypatch.setattr(name, spoil)
    items = points(16), points(8)
    with pytest.raises(WxbError, match="learning_rate"):
        fit_items(model, training(epochs=1, batch_size=16), tmp_path, *items, metric="loss")


def test_early_stopping_ends_with_the_best_weights(tmp_path):
    scores = [0.1, 0.5, 0.4, 0.5, 0.9]
    settings = training(epochs=5, early_stopping_patience=2)
    model, history = fit_linear(tmp_path, settings, Scripted(scores))
    assert [row["valid_f1"] for row in history if "valid_f1" in row] == scores[:4]
    best, last = (load_file(tmp_path / f"checkpoint-{n}/model.safetensors") for n in (8, 16))
    assert all(torch.equal(best[name], value) for name, value in model.state_dict().items())
    assert not torch.equal(best["layer.weight"], last["layer.weight"])


class Removing(Scripted):
    """Deletes all checkpoints at its last evaluation, as a user might do."""

    def __call__(self, result):
        if self.index == len(self.scores) - 1:
            shutil.rmtree(self.folder)
        return super().__call__(result)


def test_training_without_the_best_checkpoint_is_an_error(tmp_path):
    metrics = Removing([0.1, 0.5, 0.4])
    metrics.folder = tmp_path / "x"
    with pytest.raises(WxbError, match=r"no checkpoint with the best f1 \(step 8\)"):
        fit_linear(tmp_path / "x", training(epochs=3), metrics)
    with pytest.raises(WxbError, match=r"best f1 \(step None\)"):
        fit_linear(tmp_path / "y", training(epochs=2), Scripted([float("nan")] * 2))


def test_a_training_of_one_update_would_change_nothing(tmp_path):
    with pytest.raises(WxbError, match=r"found 1 update \(\d+ items, batch_size 999\)"):
        fit_linear(tmp_path, training(epochs=1, batch_size=999, warmup_ratio=0.1), Scripted([0.1]))


def test_a_training_that_diverges_is_an_error(tmp_path):
    with pytest.raises(WxbError, match=r"loss is (nan|inf) at step \d+; try a lower learning_rate"):
        fit_linear(tmp_path, training(learning_rate=1e38), Scripted([0.1] * 4))


def test_a_stopped_training_is_not_continued_after_a_kill(tmp_path):
    settings = training(epochs=5, early_stopping_patience=2)
    model, history = fit_linear(tmp_path, settings, Scripted([0.1, 0.5, 0.4, 0.5]))
    # If it trained another epoch, this score would make that the best one.
    again, its_history = fit_linear(tmp_path, settings, Scripted([0.9]))
    assert same_weights(model, again)
    assert its_history[: len(history) - 1] == history[:-1]


# Repeating and resuming


@pytest.mark.slow
def test_resumed_early_stopping_equals_uninterrupted(tmp_path):
    scores = [0.1, 0.5, 0.4, 0.5]
    # 21 steps an epoch, and a log every other step: logs and checkpoints do not coincide.
    settings = training(epochs=5, early_stopping_patience=2)
    model, history = fit_linear(tmp_path / "whole", settings, Scripted(scores), records=84)
    names = {"step", "epoch", "loss", "grad_norm", "learning_rate", "valid_loss", "valid_f1"}
    assert {name for row in history for name in row} == names
    for stop_at in (0, 1, 3):
        cut = tmp_path / f"cut at {stop_at}"
        with pytest.raises(PowerError):
            fit_linear(cut, settings, Scripted(scores, stop_at=stop_at), records=84)
        again, its_history = fit_linear(cut, settings, Scripted(scores, begin=stop_at), records=84)
        assert same_weights(model, again)
        assert history == its_history


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "llama"
    return tiny.llama(folder, vocab_size=50, tie_word_embeddings=True)


def toy_items(count):
    """Prompts whose answers repeat them between new tokens."""
    rng = np.random.default_rng(7)
    prompts = [rng.integers(5, 50, length) for length in rng.integers(3, 9, count)]
    answers = [np.concatenate([NEW_TOKENS[:1], ids, NEW_TOKENS[1:]]) for ids in prompts]
    return [
        {
            "input_ids": np.concatenate([ids, answer]),
            "labels": np.concatenate([np.full(len(ids), IGNORED), answer]),
        }
        for ids, answer in zip(prompts, answers, strict=True)
    ]


NEW_TOKENS = [50, 51]


def adapted(llama, four_bit):
    """A generator with every source of randomness in training."""
    lora = LowRank(r=4, alpha=8, dropout=0.1, target_modules=["q_proj", "v_proj"])
    settings = Tuning(lora=lora, four_bit=four_bit, gradient_checkpointing=True, neftune_alpha=5.0)
    set_seed(5)
    backbone = language_model(llama, vocabulary=52, four_bit=four_bit)
    adapter = tuning.adapt(backbone, settings, task_type="CAUSAL_LM", new_tokens=NEW_TOKENS)
    return Generator(adapter, tuning=settings)


def fit_adapted(folder, llama, four_bit, stop_at=None):
    model, evaluations = adapted(llama, four_bit), iter(range(9))

    def compute_metrics(result):
        if next(evaluations) == stop_at:
            raise PowerError
        return GenerationMethod.compute_metrics(result.predictions, result.label_ids)

    options = {"targets": GenerationMethod.TARGETS, "summarize": GenerationMethod.summarize}
    options |= {"compute_metrics": compute_metrics, "metric": GenerationMethod.METRIC, "seed": 5}
    options["collate"] = partial(collate, pad=0)
    settings = training(epochs=3, warmup_ratio=0.1)
    return model, fit_items(model, settings, folder, toy_items(16), toy_items(8), **options)


@pytest.mark.slow
@pytest.mark.parametrize("four_bit", [False, True])
def test_checkpoints_have_trainable_weights_and_training_resumes(tmp_path, llama, four_bit):
    model, history = fit_adapted(tmp_path / "whole", llama, four_bit)
    with pytest.raises(PowerError):
        fit_adapted(tmp_path / "cut", llama, four_bit, stop_at=1)
    (checkpoint,) = (tmp_path / "cut").iterdir()
    trainable = {name for name, p in model.named_parameters() if p.requires_grad}
    assert load_file(checkpoint / "model.safetensors").keys() == trainable
    assert len(trainable) < len(list(model.parameters()))
    assert not [*checkpoint.glob("adapter*")]
    again, its_history = fit_adapted(tmp_path / "cut", llama, four_bit)
    assert same_weights(model, again)
    assert history == its_history
    assert not same_weights(model, adapted(llama, four_bit))


def test_a_checkpoint_of_another_model_is_an_error(tmp_path):
    with pytest.raises(PowerError):
        fit_linear(tmp_path, training(), Scripted([0.1, 0.2], stop_at=1))
    (checkpoint,) = tmp_path.iterdir()
    weights = load_file(checkpoint / "model.safetensors")
    weights.pop("layer.weight")
    save_file(weights, checkpoint / "model.safetensors")
    seal(checkpoint)
    with pytest.raises(WxbError, match=r"does not fit the model.*layer\.weight"):
        fit_linear(tmp_path, training(), Scripted([0.1, 0.2]))


def test_curves_have_one_file_for_each_metric(tmp_path):
    history = [{"step": 1, "loss": 0.5, "epoch": 0.5}, {"step": 2, "loss": 0.25, "valid_f1": 1.0}]
    write_curves(tmp_path / "curves", history)
    files = {p.name: p.read_text() for p in (tmp_path / "curves").iterdir()}
    assert files == {
        "loss.csv": "step,loss\n1,0.5\n2,0.25\n",
        "valid_f1.csv": "step,valid_f1\n2,1.0\n",
    }
