"""Arrays put together: concatenate, stack, block, append."""
