"""Group functions that join arrays: concatenate, stack, block, append."""
