"""Generated records with personal data in five languages, for training entity recognisers."""

from demos.pii.generate import generate

__all__ = ["generate"]
