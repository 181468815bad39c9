"""Named entity recognition: typed spans of characters in a text."""
