"""Synthetic film reviews whose class a bag of words does not tell."""

from wxb.tasks.classification.reviews.generate import generate

__all__ = ["generate"]
