"""The answer to the nearest training question."""
