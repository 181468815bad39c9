"""The most frequent class, or that of the nearest training text."""
