"""Audio: reading, trimming, measures and features."""
