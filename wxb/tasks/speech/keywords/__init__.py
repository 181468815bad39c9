"""Keyword spotting: one of the training transcripts, by logistic regression on mean MFCCs."""
