"""polynomials: what this room holds."""
