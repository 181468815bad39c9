"""Text classification by a bidirectional LSTM."""
