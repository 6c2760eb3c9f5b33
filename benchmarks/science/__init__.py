"""Programs as scientists write them, each compiled and held against itself: bits, first call, speed.

They are plain NumPy and plain Python: loops over samples, state in numbers and flags, early exits, lists that grow,
small classes. Nobody wrote them for pyop, so that they say what becomes of a program that its author only decorates.
``python -m benchmarks science`` runs them all, ``python -m benchmarks.science NAME …`` some of them.
"""

from .suite import run

__all__ = ["run"]
