"""What methods share: templates of conversations, and predictors."""
