"""Group np.linalg: decompositions, solutions, norms."""
