"""Text classification by a backbone and a linear layer on its pooled hidden states."""
