"""Adapt pyop to other libraries: a module each, which imports no other of them."""
