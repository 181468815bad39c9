"""Native architectures, one file each, with the attention, masks and decoding they share."""
