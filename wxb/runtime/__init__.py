"""Run a stage: its command line, lock, log, signals, threads, GPUs and cost."""
