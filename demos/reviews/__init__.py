"""Synthetic film reviews whose class a bag of words does not tell."""

from demos.reviews.generate import generate

__all__ = ["generate"]
