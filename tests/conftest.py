"""What every test process needs before it imports anything that computes."""

import os

# As in the pipeline at sizes tiny and demo: sums of more threads can differ from run to run.
for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"
