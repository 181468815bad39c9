"""Estimates of training before it runs: parameters, FLOPs, memory, disk and time."""
