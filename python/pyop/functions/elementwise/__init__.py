"""Group elementwise functions, ufuncs and others: add, exp, clip, round, nan_to_num."""
