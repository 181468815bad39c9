"""What methods share: networks, TF-IDF weights, logistic regression, predictors."""
