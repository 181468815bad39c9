"""Text classification: one class of several for each text."""
