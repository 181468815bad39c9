"""Named entities by generation: a decoder writes the spans of a text as an answer."""
