"""Entities by writing: the model answers a text with what it found."""
