"""The project as a whole: its DAG, what is stale, what there is, and where it was made."""
