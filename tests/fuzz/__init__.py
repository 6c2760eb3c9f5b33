"""Random NumPy programs, run by plans of every kind and by NumPy itself: results and warnings have to be the same.

`arrays` makes the inputs, `calls` the lines, `program` holds both, `ways` runs it, `shrink` cuts a failing one down to
what a person can read. ``python -m tests.fuzz 0 10000`` runs the programs of these seeds.
"""
