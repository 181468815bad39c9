"""Named entities by tagging: an encoder or decoder tags every token."""
