"""Training with transformers' Trainer, for fine-tuning and pretraining.

Several processes together make the same updates as a single one (those of recordings in another
order), and accumulated batches those of one batch. Each process reads a part of every batch, and
the loss of each part is weighted by its number of targets. So the gradient and the logged loss are
those of the full batch, up to rounding.
"""

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, Sampler
from transformers import EvalPrediction, Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.utils import SAFE_WEIGHTS_NAME

from wxb.core.errors import WxbError
from wxb.core.params.training import Pretraining, Training
from wxb.core.progress import Progress
from wxb.corpora.text.encoded import IGNORED
from wxb.training import processes
from wxb.training.checkpoints import STATE, last_complete, seal

DAY = timedelta(days=1)  # processes wait for the first, which calibrates and saves


def fit(
    model: nn.Module,
    settings: Training | Pretraining,
    train: Any,
    valid: Any,
    *,
    collate: Callable[..., dict[str, Any]],
    seed: int,
    checkpoints: Path,
    caption: str,
    targets: Sequence[str] = ("labels",),
    metric: str | None = None,
    compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
    summarize: Callable[[Any, Any], Any] | None = None,
) -> list[dict[str, float]]:
    """Train a model in place; print and return its history, a row for each log or evaluation.

    A row has `step`, `epoch`, and values such as `loss` or `valid_loss`. `train` and `valid` are
    items, or datasets with a length. `collate` makes a batch of items, whose columns `targets` are
    labels. `summarize(logits, labels)` reduces a validation batch to the predictions that
    `compute_metrics` needs. With a `metric`, of which the highest value is the best (the lowest of
    `loss`), it ends with the best checkpoint; `Training` may stop early.

    Training resumes from the last complete one of `checkpoints`, a folder. A model without
    trainable weights is only evaluated. If several processes train together, each calls this and
    ends with the same model. Raises WxbError if the only update is warm-up, if the training
    diverges, or if it ends without the best checkpoint.
    """
    on_gpu, bf16 = torch.cuda.is_available(), settings.bf16 and multiplies_bfloat16()
    if settings.bf16 and not bf16:
        print("bf16: this machine would emulate bfloat16, so it multiplies in float32", flush=True)
    if processes.count() > 1 and not on_gpu and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", timeout=DAY)  # `ddp_timeout` is for GPUs only
    arguments = TrainingArguments(
        **_schedule(settings, train),
        output_dir=str(checkpoints),
        per_device_train_batch_size=settings.batch_size // processes.count(),
        per_device_eval_batch_size=2 * settings.batch_size // processes.count(),
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_ratio,  # below 1: a share of all steps
        max_grad_norm=settings.max_grad_norm,
        bf16=bf16,
        seed=seed,
        data_seed=seed,
        label_names=list(targets),
        load_best_model_at_end=metric is not None,
        metric_for_best_model=metric,
        save_total_limit=2,
        restore_callback_states_from_checkpoint=True,
        logging_nan_inf_filter=False,  # True would log a diverged loss as 0
        remove_unused_columns=False,
        use_cache=True,  # False would be saved with the model, and slow down its generation
        use_cpu=not on_gpu,
        ddp_timeout=int(DAY.total_seconds()),
        dataloader_pin_memory=on_gpu,
        disable_tqdm=True,
        report_to="none",
    )
    trainer = _Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=valid,
        data_collator=collate,
        compute_metrics=None if metric == "loss" else compute_metrics,
        preprocess_logits_for_metrics=summarize,
        callbacks=[_ProgressCallback(caption, metric)],
    )
    trainer.remove_callback(transformers.PrinterCallback)  # ours prints the same
    if isinstance(settings, Training):
        trainer.add_callback(transformers.EarlyStoppingCallback(settings.early_stopping_patience))
    if any(weight.requires_grad for weight in model.parameters()):
        _train(trainer, checkpoints, metric)
    else:
        trainer.evaluate()
    # Remove the autocast of bf16: predictions are computed in float32, as after loading. As an
    # attribute, `forward` would keep the model, and its GPU memory, until garbage is searched.
    vars(trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)).pop("forward", None)
    return [{"step": 0, "epoch": 0.0, **_metrics_row(row)} for row in trainer.state.log_history]


def multiplies_bfloat16() -> bool:
    """Whether the GPU, or without one the CPU, has instructions for bfloat16.

    Emulating them takes many times as long as float32. No CPU has them with `portable` kernels.
    """
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    names = [name for name, is_present in torch.cpu.get_capabilities().items() if is_present]
    is_portable = torch.backends.cpu.get_cpu_capability() == "AVX2"
    return not is_portable and any("bf16" in name for name in names)


def _train(trainer: "_Trainer", checkpoints: Path, metric: str | None) -> None:
    """Train the model of a trainer, from the last complete checkpoint; errors as in `fit`."""
    with PartialState().main_process_first():  # it deletes incomplete checkpoints
        resumable = last_complete(checkpoints)
    if processes.rank():  # other dropout masks for other items
        torch.manual_seed(trainer.args.seed + processes.rank())
    if resumable:
        print(f"resuming from {resumable}", flush=True)
        state = TrainerState.load_from_json(str(resumable / STATE))
        if state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]:
            # A resumed Trainer would continue although it had stopped early.
            trainer.args.max_steps = state.global_step
    trainer.train(resume_from_checkpoint=None if resumable is None else str(resumable))
    if not all(bool(weight.isfinite().all()) for weight in trainer.trainable_weights().values()):
        raise WxbError("the last updates left weights that are no numbers; lower learning_rate")
    step = trainer.state.best_global_step
    # The Trainer would only warn, and end with the last weights.
    if metric and not (checkpoints / f"checkpoint-{step}" / SAFE_WEIGHTS_NAME).exists():
        raise WxbError(
            f"found no checkpoint with the best {metric} (step {step}): if it was never a number,"
            " try a lower learning_rate; if the file was deleted, run the stage again"
        )


def _schedule(settings: Training | Pretraining, train: Any) -> dict[str, Any]:  # errors: `fit`
    """The Trainer's arguments for the order of items, rates, evaluations, checkpoints and logs."""
    if isinstance(settings, Training):
        accumulation = settings.gradient_accumulation
        steps = settings.epochs * -(-len(train) // (settings.batch_size * accumulation))
        if steps == 1 and settings.warmup_ratio:
            raise WxbError(
                f"found 1 update ({len(train)} items, batch_size {settings.batch_size}), which has"
                " a learning rate of 0, as it begins the warm-up; lower batch_size, or add epochs"
            )
        options: dict[str, Any] = {
            "num_train_epochs": settings.epochs,
            "gradient_accumulation_steps": accumulation,
            "eval_strategy": "epoch",
            "save_strategy": "epoch",
            "train_sampling_strategy": "group_by_length" if "input_ids" in train[0] else "random",
        }
    else:
        steps = settings.steps
        options = {
            "max_steps": steps,
            "train_sampling_strategy": "sequential",  # the stream is shuffled already
            "eval_strategy": "steps",
            "save_strategy": "steps",
            "eval_steps": -(-steps // settings.checkpoints),
            "save_steps": -(-steps // settings.checkpoints),
        }
    shape = "constant_with_warmup" if settings.schedule == "constant" else settings.schedule
    logs = {"logging_steps": max(1, steps // 40)}  # the points of a curve
    return {**options, **logs, "lr_scheduler_type": shape}


class _Trainer(Trainer):
    """A Trainer with checkpoints of trainable weights only, with the hashes of their files."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        """The Trainer's sampler. If it groups by length, label sequences count before inputs."""
        sampler = super()._get_train_sampler(train_dataset)
        items: Any = self.train_dataset if train_dataset is None else train_dataset
        if isinstance(sampler, LengthGroupedSampler) and np.ndim(items[0].get("labels", 0)):
            factor = max(sampler.lengths) + 1
            sampler.lengths = [
                len(item["labels"]) * factor + length
                for item, length in zip(items, sampler.lengths, strict=True)
            ]
        return sampler

    def get_train_dataloader(self) -> Any:
        """The batches that a single process would read; of each, the part for this process."""
        if processes.count() == 1:
            return super().get_train_dataloader()
        sampler: Any = self._get_train_sampler()
        size = self.args.per_device_train_batch_size * processes.count()
        if isinstance(sampler, LengthGroupedSampler):
            sampler.batch_size *= processes.count()
        dataset: Any = self.train_dataset
        collate: Any = self.data_collator
        return DataLoader(
            dataset,
            batch_sampler=_Parts(sampler, size),
            collate_fn=collate,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        # None if several processes evaluate: their random orders would differ.
        return super()._get_eval_sampler(eval_dataset) if processes.count() == 1 else None

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss times the number of targets, divided by its mean over the batches of an update.

        These are the accumulated batches of all processes; in evaluation, one of each process. So
        the mean of their losses is that of all targets, as if they were one batch. A single batch
        keeps its loss. One of several that has no targets adds 0.
        """
        loss, outputs = super().compute_loss(
            model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch
        )
        mean = self.mean_targets if model.training else self._mean_targets([inputs])
        if mean is not None:
            targets = self._n_targets(inputs)
            loss = torch.where(targets > 0, loss, loss.nan_to_num())  # the mean of no targets
            loss = loss * targets / mean.clamp(min=1e-9)
        return (loss, outputs) if return_outputs else loss

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> Any:
        """The batches of the next update, as in Trainer; sets `mean_targets` (None for one)."""
        batches, count = super().get_batch_samples(epoch_iterator, num_batches, device)
        self.mean_targets = self._mean_targets(batches)
        return batches, count

    def _mean_targets(self, batches: Sequence[Any]) -> Any:
        """Mean number of targets per batch over all processes; None for a single batch in total."""
        if processes.count() * len(batches) < 2:
            return None
        return self.accelerator.reduce(torch.stack([*map(self._n_targets, batches)]).mean(), "mean")

    def _n_targets(self, inputs: Any) -> torch.Tensor:
        """Number (float) of predicted labels in the first target column that are not IGNORED."""
        assert self.args.label_names is not None
        column: torch.Tensor = inputs[self.args.label_names[0]]
        if column.ndim > 1:
            column = column[:, getattr(self.model, "unpredicted_labels", 0) :]
        return (column != IGNORED).sum().float().to(self.args.device)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # Frozen weights do not change, and may be large and in 4 bits.
        if not self.args.should_save:
            return
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        save_file(self.trainable_weights(), Path(output_dir, SAFE_WEIGHTS_NAME))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        PartialState().wait_for_everyone()  # each process has written its random state
        if self.args.should_save:
            seal(Path(self.args.output_dir or "", f"checkpoint-{self.state.global_step}"))

    def trainable_weights(self) -> dict[str, torch.Tensor]:
        """The weights that an update changes, by name."""
        assert self.model is not None
        return {name: p.data for name, p in self.model.named_parameters() if p.requires_grad}

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Raise WxbError if a checkpoint lacks trainable weights, or has unknown ones."""
        missing = self.trainable_weights().keys() & set(load_result.missing_keys)
        if missing or load_result.unexpected_keys:
            raise WxbError(f"a checkpoint does not fit the model: {load_result}")


class _Parts(Sampler[list[int]]):
    """The part of every batch for this process: each n-th item of n processes, or all if fewer.

    The order of items is that of the first process, as random states differ.
    """

    def __init__(self, sampler: Sampler[int], size: int) -> None:
        self.sampler, self.size = sampler, size

    def __iter__(self) -> Iterator[list[int]]:
        order: Any = [[*self.sampler] if processes.rank() == 0 else None]
        (order,) = broadcast_object_list(order)
        for start in range(0, len(order), self.size):
            batch = order[start : start + self.size]
            part = batch[processes.rank() :: processes.count()]
            yield part if len(batch) >= processes.count() else batch

    def __len__(self) -> int:
        return -(-len(self.sampler) // self.size)  # type: ignore[arg-type]


class _ProgressCallback(transformers.TrainerCallback):
    """Prints progress and logs, sets `updates` of a model, raises WxbError if training diverges."""

    def __init__(self, caption: str, metric: str | None) -> None:
        self.caption, self.shown = caption, {"loss", f"valid_{metric}"}
        self.metrics: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:
        self.progress = Progress(self.caption, state.max_steps, first=state.global_step)

    def on_step_begin(
        self, args: Any, state: TrainerState, control: Any, model: Any = None, **_: Any
    ) -> None:
        # `updates`: of models whose loss depends on the step, such as scheduled sampling.
        if hasattr(model, "updates"):
            model.updates = state.global_step

    def on_step_end(
        self, args: Any, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.progress.update(state.global_step, **self.metrics)
        # A checkpoint has only logged losses: else the curve of a resumed run would differ.
        control.should_log |= control.should_save

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **_: Any) -> None:
        control.should_log |= control.should_save

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: Any = None, **_: Any
    ) -> None:
        """Print the metrics; raise WxbError for a loss or gradient norm that is not finite."""
        row: dict[str, float] = dict(logs or {})
        metrics = _metrics_row(row)
        listed = ", ".join(f"{key} {value:.4g}" for key, value in metrics.items())
        print(f"step {state.global_step}: {listed}", flush=True)
        # Tensors of other lengths do not fit the gaps of freed ones, which the C library keeps.
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
        for key, name in (("loss", "training loss"), ("grad_norm", "norm of the gradient")):
            if not math.isfinite(value := row.get(key, 0.0)):
                fault = f"the {name} is {value} at step {state.global_step}"
                raise WxbError(f"{fault}; try a lower learning_rate")
        self.metrics |= {k: f"{v:.3f}" for k, v in metrics.items() if k in self.shown}


def _metrics_row(row: Mapping[str, float]) -> dict[str, float]:
    """A row of the Trainer's log without times, `train_` and `total_`; `eval_` becomes `valid_`."""
    return {
        key.replace("eval_", "valid_"): value
        for key, value in row.items()
        if not key.startswith(("train_", "total_"))
        and not key.endswith(("_time", "_runtime", "_per_second"))
    }
