"""Synthetic records with labelled personal data in five languages, for NER."""

from demos.pii.generate import generate

__all__ = ["generate"]
