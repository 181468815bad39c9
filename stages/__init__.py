"""The stages of the pipeline, one module each: `python -m stages.<verb> <name>`.

A stage is a function `main(params, name)` that reads files and writes files. Its module passes it
to `wxb.runtime.command.run`.
"""

from wxb.runtime import signals

signals.exit_during_imports()
from wxb.runtime import kernels  # noqa: E402

kernels.set_environment()  # before modules of stages import torch
