"""Classes by a backbone and a linear layer on what is pooled of its hidden states."""
