"""Named entities by a linear-chain CRF on features of words: no network, no pretraining."""
