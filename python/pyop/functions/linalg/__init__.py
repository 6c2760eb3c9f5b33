"""np.linalg: decompositions, solutions, norms."""
