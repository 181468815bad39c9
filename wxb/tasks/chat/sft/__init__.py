"""Chat by supervised fine-tuning of a decoder."""
