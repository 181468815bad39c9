"""Model cards: the name of the task on the hub, and an input of `predict` as Python."""

HUB_TASK = "text-classification"
EXAMPLE = '"A film that I will not forget."'
