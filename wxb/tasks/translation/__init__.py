"""Translation: a text in another language for each text."""
