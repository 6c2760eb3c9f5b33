"""Build graphs, and apply NumPy to the Values in them."""

from .._core import Plan
from ..deferred import methods_of

methods_of(Plan, "pyop.graph.explain", "explain")
methods_of(Plan, "pyop.machine_code.shown", "machine_code")
methods_of(Plan, "pyop.graph.low_level", "low_level_callable", "ctypes")
