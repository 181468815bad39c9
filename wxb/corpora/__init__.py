"""Where records come from: one module per corpus format, and generators."""
