"""Backbones: made from a configuration or loaded, and what of them learns."""
