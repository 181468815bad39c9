"""What `wxb new` does: look at records, and write blocks of params.yaml for them."""
