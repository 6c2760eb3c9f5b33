"""Group functions of elements by position: indexing, take, take_along_axis, nonzero, unravel_index."""
