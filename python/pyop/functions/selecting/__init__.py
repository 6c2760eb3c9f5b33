"""Elements by conditions: where, select, choose, compress, extract, piecewise."""
