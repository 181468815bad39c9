"""The verbs of the pipeline, one module each: `python -m stages.<verb> <name>`.

A stage is a pure function `main(params, name)`, which reads files and writes files. Its module
hands it to `wxb.runtime.command.run`.
"""

from wxb.runtime import kernels, signals

# This package is imported before the module of a stage, and so before torch.
kernels.prepare()
signals.exit_during_imports()
