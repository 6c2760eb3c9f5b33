"""Group functions that return the same elements in another shape or order: reshape, ravel, flip, roll, rot90."""
