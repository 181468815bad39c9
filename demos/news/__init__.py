"""Synthetic fake and real news of many publishers, each with a house style."""

from demos.news.generate import generate

__all__ = ["generate"]
