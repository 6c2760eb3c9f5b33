"""An array in several parts: split, array_split, hsplit, unstack."""
