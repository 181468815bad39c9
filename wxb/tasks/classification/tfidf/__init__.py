"""Text classification by logistic regression on TF-IDF weights of n-grams."""
