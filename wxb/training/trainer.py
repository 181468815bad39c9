"""Training as transformers' Trainer does it: assembled here, for fine-tuning and pretraining."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import save_file
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.utils import SAFE_WEIGHTS_NAME

from wxb.core.errors import WxbError
from wxb.core.params.training import Optimisation, Training
from wxb.core.progress import Progress
from wxb.metrics import Metric
from wxb.training import fsdp, processes
from wxb.training.checkpoints import last_complete
from wxb.training.run import TrainingRun
from wxb.training.sharing import SharingTrainer

DAY = 86_400  # seconds
LOGS = 40  # points on a training curve

# Names of ours for what transformers calls otherwise.
SCHEDULES = {"constant": "constant_with_warmup", "step": "constant"}


def fit(model: nn.Module, run: TrainingRun) -> list[dict[str, float]]:
    """Train a model in place and return its history, one row for each time something was logged.

    Training continues from the last complete checkpoint. Raises WxbError if the best checkpoint is
    gone when training ends, or no metric was a number.

    A model without trainable weights is only evaluated. If several processes train together, each
    calls this, and has the same model in the end. With `fsdp` that waits in main memory meanwhile.
    """
    settings, best = run.settings, run.best
    if settings.processes != processes.count():
        raise WxbError(
            f"found processes {settings.processes}, and {processes.count()} that run; expected as"
            " many: only the stages train and pretrain start several"
        )
    learns = any(weight.requires_grad for weight in model.parameters())
    sharded = settings.fsdp and learns
    trainer = _Trainer(
        model=deepcopy(model) if sharded else model,
        args=_arguments(run, fsdp.config(model) if sharded else None),
        train_dataset=run.train,
        eval_dataset=run.valid,
        data_collator=run.collate,
        compute_metrics=partial(_scored, run.compute_metrics) if run.compute_metrics else None,
        preprocess_logits_for_metrics=run.summarize,
        callbacks=[_Narrator(run.label, best)],
        schedule=settings,
    )
    if not learns:
        trainer.evaluate()
        return [{"step": 0, "epoch": 0.0, **_metrics_of(row)} for row in trainer.state.log_history]
    if isinstance(settings, Training):
        trainer.add_callback(EarlyStoppingCallback(settings.early_stopping_patience))
    with PartialState().main_process_first():  # which removes what is not complete
        resumable = last_complete(run.checkpoints, processes.count(), sharded=sharded)
    if processes.rank():
        torch.manual_seed(run.seed + processes.rank())  # dropout: other items, other masks
    if resumable:
        print(f"going on from {resumable}", flush=True)
        state = TrainerState.load_from_json(str(resumable / TRAINER_STATE_NAME))
        if state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]:
            # The Trainer forgets on resuming that it had stopped early, and would go on.
            trainer.args.max_steps = state.global_step
    trainer.train(resume_from_checkpoint=None if resumable is None else str(resumable))
    if best is not None:
        _check_best(trainer.state, best.key)
    history = [_metrics_of(row) for row in trainer.state.log_history]
    if sharded:
        fsdp.gather(cast(nn.Module, trainer.model), model)
        device = trainer.args.device
        del trainer  # its parts of the model make room for the whole one
        model.to(device)
    return history


def _check_best(state: TrainerState, best: str) -> None:
    """Raise WxbError unless training ended with the best weights: else the Trainer only warns."""
    if state.best_global_step is None:
        raise WxbError(
            f"no evaluation gave a number for {best}, so no weights are the best: try a lower"
            " learning rate"
        )
    path = Path(state.best_model_checkpoint or "nowhere", SAFE_WEIGHTS_NAME)
    if path.parent.name != f"checkpoint-{state.best_global_step}" or not path.exists():
        raise WxbError(
            f"the weights of step {state.best_global_step}, which had the best {best}, are gone:"
            " its checkpoint was removed while training ran; run the stage again"
        )


def _scored(
    compute_metrics: Callable[[Any, Any], dict[str, float]], result: EvalPrediction
) -> dict[str, float]:
    return compute_metrics(result.predictions, result.label_ids)


def _arguments(run: TrainingRun, sharding: dict[str, Any] | None) -> TrainingArguments:
    settings, train, best = run.settings, run.train, run.best
    more: dict[str, Any]
    if isinstance(settings, Training):
        accumulation = settings.gradient_accumulation
        steps = settings.epochs * -(-len(train) // (settings.batch_size * accumulation))
        more = {
            "num_train_epochs": settings.epochs,
            "gradient_accumulation_steps": accumulation,
            "eval_strategy": "epoch",
            "save_strategy": "epoch",
            "train_sampling_strategy": "group_by_length" if "input_ids" in train[0] else "random",
        }
    else:
        steps = settings.steps
        more = {
            "max_steps": steps,
            "train_sampling_strategy": "sequential",  # the stream is shuffled already
            "eval_strategy": "steps",
            "save_strategy": "steps",
            "eval_steps": -(-steps // settings.checkpoints),
            "save_steps": -(-steps // settings.checkpoints),
        }
    if sharding:
        more |= {"fsdp": True, "fsdp_config": sharding}
    on_gpu = torch.cuda.is_available()
    return TrainingArguments(
        output_dir=str(run.checkpoints),
        **more,
        per_device_train_batch_size=settings.batch_size // settings.processes,
        per_device_eval_batch_size=2 * settings.batch_size // settings.processes,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_ratio,  # below 1 it is a share of all steps
        lr_scheduler_type=SCHEDULES.get(settings.schedule, settings.schedule),
        lr_scheduler_kwargs=_schedule_options(settings, best),
        max_grad_norm=settings.max_grad_norm,
        load_best_model_at_end=best is not None,
        metric_for_best_model=best.key if best else None,
        greater_is_better=not best.lower_is_better if best else None,
        save_total_limit=2,
        restore_callback_states_from_checkpoint=True,
        logging_steps=max(1, steps // LOGS),
        label_names=list(run.targets),
        remove_unused_columns=False,
        use_cache=True,  # False would stay in the configuration of the model, and slow generation
        seed=run.seed,
        data_seed=run.seed,
        use_cpu=not on_gpu,
        ddp_backend="gloo" if processes.count() > 1 and not on_gpu else None,
        ddp_timeout=DAY,  # others wait while the first calibrates and saves; one that ends is told
        bf16=torch.cuda.is_bf16_supported() if on_gpu else getattr(settings, "bf16", False),
        dataloader_pin_memory=on_gpu,
        disable_tqdm=True,
        report_to="none",
    )


def _schedule_options(settings: Optimisation, best: Metric | None) -> dict[str, Any]:
    if settings.schedule == "reduce_lr_on_plateau":
        return {
            "mode": "min" if best is None or best.lower_is_better else "max",
            **settings.schedule_options,
        }
    return {} if settings.schedule == "step" else dict(settings.schedule_options)


class _Trainer(SharingTrainer):
    """The Trainer with one more schedule, and checkpoints of what learns only.

    The schedule: learning rate times `gamma` every `step_size` steps. Batches are grouped by the
    lengths of targets, too, where these are not those of inputs.
    """

    def __init__(self, *args: Any, schedule: Optimisation, **options: Any) -> None:
        super().__init__(*args, **options)
        self.schedule = schedule

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        sampler = super()._get_train_sampler(train_dataset)
        items: Any = self.train_dataset if train_dataset is None else train_dataset
        if isinstance(sampler, LengthGroupedSampler) and np.ndim(items[0].get("labels", 0)):
            # First by the length of labels, then by that of inputs.
            more = max(sampler.lengths) + 1
            sampler.lengths = [
                len(item["labels"]) * more + length
                for item, length in zip(items, sampler.lengths, strict=True)
            ]
        return sampler

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # A frozen backbone is as it was when it was loaded, and may be 4-bit and large.
        if not self.args.should_save:
            return
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        learnt = self._learnt()
        if state_dict is not None:  # what FSDP has put together: of the model there are parts here
            learnt = {name: state_dict[name] for name in learnt}
        save_file(learnt, Path(output_dir, SAFE_WEIGHTS_NAME))

    def _learnt(self) -> dict[str, torch.Tensor]:
        assert self.model is not None
        return {name: p.data for name, p in self.model.named_parameters() if p.requires_grad}

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        lacking = self._learnt().keys() & set(load_result.missing_keys)
        if lacking or load_result.unexpected_keys:
            raise WxbError(f"a checkpoint does not fit the model: {load_result}")

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> LRScheduler:
        if self.schedule.schedule != "step" or self.lr_scheduler is not None:
            return super().create_scheduler(num_training_steps, optimizer)
        warmup = self.args.get_warmup_steps(num_training_steps)
        size = self.schedule.schedule_options["step_size"]
        gamma = self.schedule.schedule_options["gamma"]

        def factor(step: int) -> float:
            return step / warmup if step < warmup else float(gamma ** ((step - warmup) // size))

        chosen = optimizer or self.optimizer
        assert chosen is not None  # the Trainer makes the optimiser first
        self.lr_scheduler = LambdaLR(chosen, factor)
        return self.lr_scheduler


class _Narrator(TrainerCallback):
    """Shows progress on the terminal, and every logged metric in the stage's log."""

    def __init__(self, label: str, best: Metric | None) -> None:
        self.label = label
        self.shown = {"loss", *([f"valid_{best.key}"] if best else [])}
        self.metrics: dict[str, str] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.progress = Progress(self.label, state.max_steps)

    def on_step_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: Any = None,
        **_: Any,
    ) -> None:
        # A model whose training changes as it goes on is told how far it is, resumed or not.
        if hasattr(model, "updates"):
            model.updates = state.global_step

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.progress.at(state.global_step, **self.metrics)
        self._log_what_is_saved(control)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._log_what_is_saved(control)

    @staticmethod
    def _log_what_is_saved(control: TrainerControl) -> None:
        # A checkpoint lacks the losses since the last log: the curve of a resumed run would differ.
        control.should_log |= control.should_save

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: Any,
    ) -> None:
        metrics = dict(logs or {})
        print(f"step {state.global_step}: {metrics}", flush=True)
        found = _metrics_of(metrics)
        self.metrics |= {k: f"{v:.3f}" for k, v in found.items() if k in self.shown}


def _metrics_of(row: Mapping[str, float]) -> dict[str, float]:
    """A row of the Trainer's log without its timings; `eval_` is called `valid_`."""
    return {
        key.replace("eval_", "valid_"): value
        for key, value in row.items()
        if not key.startswith(("train_", "total_"))
        and not key.endswith(("_time", "_runtime", "_per_second"))
    }
