"""Speech recognition with Whisper."""
