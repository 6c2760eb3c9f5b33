"""Declare the arrays that a function takes and returns: sizes, specs, signatures, contracts."""
