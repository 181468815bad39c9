"""Tokenizers, character offsets, windows over long texts, and encoded columns."""
