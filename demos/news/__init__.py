"""Synthetic fake and real news, from publishers that are easy to distinguish."""

from demos.news.generate import generate

__all__ = ["generate"]
