"""What methods share: networks and predictors."""
