"""Synthetic news, fake and real, from publishers that are easily told apart."""

from demos.news.generate import generate

__all__ = ["generate"]
