"""A Trainer for several processes, which together make the same updates as a single one.

Each process reads a part of every batch. Its loss is weighted by its number of loss tokens. So the
gradient and the logged loss are those of the full batch, up to rounding.
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


class DistributedTrainer(Trainer):
    """A Trainer where each process reads `per_device_train_batch_size` items of every batch."""

    def create_accelerator_and_postprocess(self) -> None:
        """Create the accelerator as transformers does, and enable FSDP on CPUs too."""
        super().create_accelerator_and_postprocess()
        if self.args.fsdp:
            fsdp.enable_on_cpu(self)

    def get_train_dataloader(self) -> Any:
        """Load the batches of a single process, in its order, and collate the part of this one."""
        if processes.count() == 1:
            return super().get_train_dataloader()
        size = self.args.per_device_train_batch_size * processes.count()
        dataset: Any = self.train_dataset
        collate: Any = self.data_collator
        return DataLoader(
            dataset,
            batch_sampler=BatchSampler(
                _SharedOrder(self._get_train_sampler()), size, drop_last=False
            ),
            collate_fn=partial(collate_part, collate),
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return _group_full_batches(super()._get_train_sampler(train_dataset))

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        return _group_full_batches(super()._get_eval_sampler(eval_dataset))

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The loss, weighted by the share of this process in the targets of all processes."""
        loss, outputs = super().compute_loss(
            model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch
        )
        if processes.count() > 1:
            targets = self._target_count(inputs)
            loss = torch.where(targets > 0, loss, loss.nan_to_num())  # the mean of no targets
            loss = loss * targets / self.accelerator.reduce(targets, "mean").clamp(min=1)
        return (loss, outputs) if return_outputs else loss

    def _target_count(self, inputs: Any) -> torch.Tensor:
        """Number of targets of a batch, in the first column of targets."""
        assert self.args.label_names is not None
        column: torch.Tensor = inputs[self.args.label_names[0]]
        if column.ndim > 1:
            column = column[:, getattr(self.model, "unpredicted_labels", 0) :]
        return (column != IGNORED).sum().float().to(self.args.device)


def collate_part(collate: Callable[[Sequence[Any]], Any], items: Sequence[Any]) -> Any:
    """Collate the items of this process: every n-th of n processes, or all if there are fewer."""
    part = items[processes.rank() :: processes.count()]
    return collate(part if len(items) >= processes.count() else items)


def _group_full_batches(sampler: Any) -> Any:
    """Set a sampler to group the items of all processes by length, not those of one."""
    if isinstance(sampler, LengthGroupedSampler):
        sampler.batch_size *= processes.count()
    return sampler


class _SharedOrder(Sampler[int]):
    """The order of the first process, whose random state may differ from that of the others."""

    def __init__(self, sampler: Sampler[int]) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        random_state = torch.get_rng_state()
        synchronize_rng_state(RNGType.TORCH)
        order = [*self.sampler]
        if processes.rank():
            torch.set_rng_state(random_state)
        return iter(order)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]
