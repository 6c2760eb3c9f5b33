"""Run ``python -m pyop demo``: a pipeline on real data, once as plain Python and once as a compiled plan."""

from .data import load
from .pipeline import OPS, PLAIN, SPECS, Stages, features, recognise
from .run import main

__all__ = ["OPS", "PLAIN", "SPECS", "Stages", "features", "load", "main", "recognise"]
