"""The command `wxb`, one module for each command that is more than a call."""

from wxb.runtime import signals

# This package is imported before the modules of commands, which take half a second.
signals.exit_during_imports()
