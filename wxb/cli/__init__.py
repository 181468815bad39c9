"""The command `wxb`, one module for each command that is more than a call."""
