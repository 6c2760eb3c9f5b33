"""Group functions that split an array: split, array_split, hsplit, unstack."""
