"""Speech recognition: what was said in a recording."""
