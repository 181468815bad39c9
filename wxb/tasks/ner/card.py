"""Model cards: the name of the task on the hub, and an input of `predict` as Python."""

HUB_TASK = "token-classification"
EXAMPLE = '"Call Ann Miller."'
