"""Elements by their places: indexing itself, take, take_along_axis, nonzero, unravel_index."""
