"""Charts, and templates made into HTML: what the pages of studies, tasks and lessons share."""
