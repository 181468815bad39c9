"""What all other packages may import: errors, files, paths, parameters, the hub."""
