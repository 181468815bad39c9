"""Entities by tagging tokens."""
