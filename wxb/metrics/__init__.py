"""Scores of character spans and the uncertainty of those scores."""

LEVEL = 0.95  # of every interval
TEST = "test"  # the test set that every corpus has; others have names of their own
