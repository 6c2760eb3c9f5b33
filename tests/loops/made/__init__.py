"""Random loops, held against NumPy: ``python -m loops.made 0 1000`` in tests/."""
