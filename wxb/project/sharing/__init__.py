"""Share trained experiments: model cards, and adapters merged into full models."""
