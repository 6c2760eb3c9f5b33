"""Arrays made in the likeness of others, ranges, grids: zeros_like, copy, astype, linspace, meshgrid."""
