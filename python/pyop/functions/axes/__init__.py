"""Group functions that exchange, add and drop axes: transpose, moveaxis, swapaxes, expand_dims, squeeze."""
