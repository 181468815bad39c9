"""The translation of the nearest training source."""
