"""Polynomials by their coefficients: polyval, polyfit, roots."""
