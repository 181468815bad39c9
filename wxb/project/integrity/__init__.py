"""What kills and damaged files leave in DVC's records: prevented, repaired and found."""
