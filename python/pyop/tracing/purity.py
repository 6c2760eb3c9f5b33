"""Tell which callables are known to be functions of their arguments: no clocks, files, commands, sources of entropy.

`may_be_impure` is asked of what a function can reach, before a trace, and errs on the side of yes: then the trace is
watched. `is_impure` is asked of what is called meanwhile (`call_watch.py`), where all calls end: C functions. What
neither list knows is impure.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .libraries import REACH_OUT

__all__ = ["is_impure", "may_be_impure", "module_of"]

# Modules, and packages with all that is in them, whose functions are functions of their arguments.
_PURE = frozenset(
    (
        *("abc", "_abc", "array", "ast", "bisect", "_bisect", "builtins", "cmath", "codecs", "_codecs", "collections"),
        *("_collections", "_collections_abc", "contextlib", "contextvars", "_contextvars", "copy", "copyreg"),
        *("dataclasses", "dis", "enum", "fractions", "functools", "_functools", "gc", "heapq", "_heapq", "inspect"),
        *("itertools", "json", "_json", "keyword", "linecache", "logging", "math", "method", "numbers", "numpy"),
        *("opcode", "operator", "_operator", "pyop", "re", "_sre", "scipy", "statistics", "_statistics", "string"),
        *("_string", "struct", "_struct", "textwrap", "threading", "_thread", "token", "traceback", "types", "typing"),
        *("_typing", "unicodedata", "warnings", "_warnings", "weakref", "_weakref", "_weakrefset"),
    )
)
# Of these, but for the functions named here.
_REACH_OUT = {
    "builtins": REACH_OUT,
    "numpy": frozenset(("fromfile", "memmap", "tofile", "load", "dump", "save")),
}
_FILES = ("numpy.lib._npyio_impl", "numpy.lib._datasource", "numpy.lib.npyio", "numpy._core.memmap", "scipy.io")
_RANDOM = "numpy.random"
# C functions of these are called by what is pure; state of `random` and NumPy's generators is seen in another way.
_QUIET = _PURE | frozenset(("sys", "random", "_random", "decimal", "datetime", "_imp", "_opcode", "_stat", "_ast"))
_LOUD = frozenset(("open", "input", "breakpoint", "fromfile", "tofile", "now", "today", "utcnow"))
_SMALL = frozenset(("fspath", "_path_normpath", "strerror", "text_encoding"))  # of `posix` and `io`


def module_of(x: Any) -> str:
    """Return the name of the module that an object, or the class of what it is a method of, was defined in.

    >>> import math, time
    >>> from pyop.tracing.purity import module_of
    >>> module_of(math.sin), module_of(time.time), module_of([].append)
    ('math', 'time', 'builtins')
    """
    if isinstance(x, BuiltinFunctionType):
        owner = x.__self__
        if isinstance(owner, ModuleType):
            return owner.__name__
        if x.__module__ is not None:  # as of what pybind11 and Cython make
            return str(x.__module__)
        return str((owner if isinstance(owner, type) else type(owner)).__module__)
    if isinstance(x, FunctionType):
        return str(x.__globals__.get("__name__"))
    return str(getattr(x if isinstance(x, type) else type(x), "__module__", ""))


def may_be_impure(x: Any) -> bool:
    """Return whether a callable of a library is not known to be a function of its arguments, by what it is.

    >>> import time, numpy as np
    >>> from pyop.tracing.purity import may_be_impure
    >>> may_be_impure(time.perf_counter), may_be_impure(np.loadtxt), may_be_impure(np.sin)
    (True, True, False)
    """
    module = module_of(x)
    if module.startswith(_RANDOM):  # its generators are looked at by their state
        random = sys.modules.get(_RANDOM)
        owner = getattr(x, "__self__", None)
        kinds = () if random is None else (random.RandomState, random.Generator)
        return not isinstance(owner, kinds) and not isinstance(x, kinds)
    if module.startswith(_FILES):
        return True
    root = module.partition(".")[0]
    return root not in _PURE or getattr(x, "__name__", "") in _REACH_OUT.get(root, ())


def is_impure(function: Any) -> bool:
    """Return whether a C function that is called is not known to be a function of its arguments."""
    root, name = module_of(function).partition(".")[0], getattr(function, "__name__", "")
    return name in _LOUD if root in _QUIET else not (root in ("posix", "io", "_io") and name in _SMALL)
