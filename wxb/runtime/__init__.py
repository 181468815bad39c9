"""What runs a stage: its command line, lock, log, signals, kernels, GPUs and cost."""
