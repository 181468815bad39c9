"""What methods share: windows, tags, answers, features of words, networks, predictors."""
