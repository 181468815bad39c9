"""Recordings: read, cleaned and measured, and what a model hears of them."""
