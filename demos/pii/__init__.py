"""Synthetic records with labelled personal data in English and Chinese, for NER."""

from demos.pii.generate import generate

__all__ = ["generate"]
