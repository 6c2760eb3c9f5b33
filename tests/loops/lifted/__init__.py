"""Random functions of all of Python's control flow, lifted and run on plain values: they do what they did before.

`programs` writes them, `judge` runs a function and its lifted copy and compares results, exceptions, the lines of
tracebacks, and the order in which everything was evaluated. ``python -m tests.loops.lifted FIRST LAST`` runs many.
"""
