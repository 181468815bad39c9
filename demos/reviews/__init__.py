"""Synthetic film reviews from templates, with words of praise and of blame in both classes."""

from demos.reviews.generate import generate

__all__ = ["generate"]
