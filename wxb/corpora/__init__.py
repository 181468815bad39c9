"""Download, read, clean and divide corpora; `text` tokenizes them."""
