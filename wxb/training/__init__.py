"""Training with transformers' Trainer: batches, checkpoints, pretraining."""
