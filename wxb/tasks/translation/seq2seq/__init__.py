"""Translation from sequence to sequence, by models from random weights."""
