"""Random classes and closures with state, compiled, held against the plain ones: `programs` writes them, `judge` runs
both.
"""
