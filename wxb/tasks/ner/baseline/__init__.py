"""Entities by the mentions of training."""
