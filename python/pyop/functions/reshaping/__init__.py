"""The same elements in another shape or order: reshape, ravel, broadcast_to, flip, roll, rot90."""
