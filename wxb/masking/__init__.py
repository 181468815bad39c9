"""What `wxb mask` and `wxb unmask` do: find personal data by a trained experiment, replace it."""
