"""Model cards: the name of the task on the hub, and an input of `predict` as Python."""

HUB_TASK = "text-generation"
EXAMPLE = '"Where is the library?"'
