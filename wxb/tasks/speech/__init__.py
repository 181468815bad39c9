"""The task `speech`: transcribe recordings."""
