"""Group functions of polynomials by their coefficients: polyval, polyfit, roots."""
