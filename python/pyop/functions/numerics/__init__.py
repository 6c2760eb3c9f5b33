"""Group functions of neighbours: diff, gradient, trapezoid, convolve, interp."""
