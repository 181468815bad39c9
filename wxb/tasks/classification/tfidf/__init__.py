"""Classes by logistic regression over the weighted counts of words and n-grams."""
