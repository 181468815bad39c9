"""`wxb new`: guess how to read records, and add blocks to params.yaml."""
