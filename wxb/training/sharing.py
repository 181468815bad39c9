"""The Trainer of one of several processes: together they make the updates that one would make.

Each takes its part of every batch, and counts as much as it has of what the loss is a mean over. So
the gradient is that of the whole batch but for rounding, and so is the loss that is logged. One
process alone trains as the Trainer does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from accelerate.utils import RNGType, synchronize_rng_state
from torch.utils.data import BatchSampler, DataLoader, Sampler
from transformers import Trainer
from transformers.trainer_pt_utils import LengthGroupedSampler

from wxb.corpora.text.encoded import IGNORED
from wxb.training import fsdp, processes


class SharingTrainer(Trainer):
    """The Trainer, where each process has `per_device_train_batch_size` of a batch's items."""

    def create_accelerator_and_postprocess(self) -> None:
        """As transformers does it, where the model is to be sharded on a CPU, too."""
        super().create_accelerator_and_postprocess()
        if self.args.fsdp:
            fsdp.enable_on_cpu(self)

    def get_train_dataloader(self) -> Any:
        """Whole batches, in the order of one process, of which each collates its part."""
        if processes.count() == 1:
            return super().get_train_dataloader()
        size = self.args.per_device_train_batch_size * processes.count()
        dataset: Any = self.train_dataset
        collate: Any = self.data_collator
        return DataLoader(
            dataset,
            batch_sampler=BatchSampler(
                _SameOrder(self._get_train_sampler()), size, drop_last=False
            ),
            collate_fn=partial(own_part, collate),
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return _by_whole_batches(super()._get_train_sampler(train_dataset))

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        return _by_whole_batches(super()._get_eval_sampler(eval_dataset))

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The loss, weighted by how many targets this process has of them all."""
        loss, outputs = super().compute_loss(
            model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch
        )
        if processes.count() > 1:
            own = self._targets(inputs)
            loss = torch.where(own > 0, loss, loss.nan_to_num())  # a mean over nothing
            loss = loss * own / self.accelerator.reduce(own, "mean").clamp(min=1)
        return (loss, outputs) if return_outputs else loss

    def _targets(self, inputs: Any) -> torch.Tensor:
        """How many targets a batch has, of the first column of them."""
        assert self.args.label_names is not None
        column: torch.Tensor = inputs[self.args.label_names[0]]
        if column.ndim > 1:
            column = column[:, getattr(self.model, "unasked", 0) :]
        return (column != IGNORED).sum().float().to(self.args.device)


def own_part(collate: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> Any:
    """The batch of this process: every so manieth item, or where too few are left all of them."""
    part = items[processes.rank() :: processes.count()]
    return collate(part if len(items) >= processes.count() else items)


def _by_whole_batches(sampler: Any) -> Any:
    """Group by length what all processes read at once."""
    if isinstance(sampler, LengthGroupedSampler):
        sampler.batch_size *= processes.count()
    return sampler


class _SameOrder(Sampler[int]):
    """The order of the first process: random numbers of the others may have gone other ways."""

    def __init__(self, sampler: Sampler[int]) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        own = torch.get_rng_state()
        synchronize_rng_state(RNGType.TORCH)
        order = [*self.sampler]
        if processes.rank():
            torch.set_rng_state(own)
        return iter(order)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]
