"""Backbones: built from a configuration or loaded, and prepared for training."""
