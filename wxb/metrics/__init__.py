"""Scores of character spans and the uncertainty of those scores."""
