"""Generators of demo data; a corpus of params.yaml names one by `path`."""
