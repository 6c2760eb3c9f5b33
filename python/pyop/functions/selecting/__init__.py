"""Group functions that choose elements by conditions: where, select, choose, compress, extract, piecewise."""
