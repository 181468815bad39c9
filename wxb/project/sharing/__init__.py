"""A trained experiment made ready for others: its card, and an adapter as a whole model."""
