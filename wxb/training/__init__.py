"""Training as transformers' Trainer does it: batches, checkpoints, pretraining."""
