"""Other libraries with pyop's functions in their hands."""
