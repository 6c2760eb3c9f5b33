"""Compile NumPy functions: `pyop.compile` traces a function for the arguments of a call, and then runs it as a plan.

Read in this order: `front` (what the user calls), `arguments` (what came, leaf by leaf), `number` (Python numbers that
are not known yet), `tracer` (from a call to a plan), `results` (what a function returns beside arrays), `retrace` (the
warning), `methods` (of compiled functions, the cold ones). Finding the plan of a call again is C++:
csrc/plan/compiled_function.cpp.
"""

from .._core import CompiledFunction
from ..deferred import methods_of
from .front import compile  # noqa: A004
from .retrace import RetraceWarning

__all__ = ["CompiledFunction", "RetraceWarning", "compile"]

_METHODS = ("cache_info", "graph", "__reduce__", "__copy__", "__deepcopy__", "__class_getitem__")
methods_of(CompiledFunction, "pyop.compiling.methods", *_METHODS)
