"""Supervised fine-tuning: a decoder goes on from a conversation with its answer."""
