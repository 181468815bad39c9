"""Speech by an encoder that hears and a decoder that writes: Whisper."""
