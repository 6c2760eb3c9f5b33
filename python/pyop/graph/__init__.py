"""Graphs, and NumPy on the Values in them."""
