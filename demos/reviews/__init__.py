"""Synthetic film reviews whose class cannot be read from a bag of words."""

from demos.reviews.generate import generate

__all__ = ["generate"]
