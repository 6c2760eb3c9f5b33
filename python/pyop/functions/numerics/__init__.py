"""Functions of neighbours: diff, gradient, trapezoid, convolve, interp."""
