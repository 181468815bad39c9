"""Models: backbones from a configuration or a checkpoint, and the heads that tasks put on them."""
