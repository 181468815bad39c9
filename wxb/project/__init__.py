"""The project as a whole: DAG, staleness, inventory, profiles, provenance and comparisons."""
