"""Text classification: one of several classes for each text."""
