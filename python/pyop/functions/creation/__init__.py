"""Group functions that make arrays like others, ranges and grids: zeros_like, copy, astype, linspace, meshgrid."""
