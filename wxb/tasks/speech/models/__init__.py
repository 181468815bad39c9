"""What methods share: features of recordings, networks, predictors."""
