"""Generators of the demos' data: each corpus of params.yaml names one by `path`."""
