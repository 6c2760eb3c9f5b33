"""Axes exchanged, added and dropped: transpose, moveaxis, swapaxes, expand_dims, squeeze."""
