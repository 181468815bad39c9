"""The transcript of the training recording with the nearest features."""
