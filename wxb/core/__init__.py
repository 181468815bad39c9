"""Foundations of all packages: errors, files, paths, parameters, progress and the hub."""
