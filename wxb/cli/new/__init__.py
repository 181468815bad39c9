"""`wxb new`: recognize how to read records, and add blocks to params.yaml."""
