"""Translation: a text into one of another language."""
