"""The ufuncs of scipy.special."""
