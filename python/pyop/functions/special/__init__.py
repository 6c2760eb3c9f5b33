"""Group the ufuncs of scipy.special."""
