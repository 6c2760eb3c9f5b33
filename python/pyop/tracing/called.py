"""Tell whether a function calls what it reads: ``np.uint32(x)`` is a call, ``dtype=np.uint32`` is none.

A type is compared, and passed on, as itself; only where it is called may another function stand for it.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType

__all__ = ["is_called"]

_FLAG = sys.version_info >= (3, 12)  # of LOAD_ATTR, for a method that is called
_NULL_FIRST = sys.version_info < (3, 13)  # before what is called, not behind it
_NO_MATTER = frozenset(("CACHE", "EXTENDED_ARG", "NOP"))


@lru_cache(maxsize=1024)
def is_called(code: CodeType, at: int) -> bool:
    """Return whether the global or attribute that the instruction at this offset (`frame.f_lasti`) reads is called.

    >>> import dis, numpy as np
    >>> from pyop.tracing.called import is_called
    >>> def f(x):
    ...     return np.uint32(x), np.zeros(2, dtype=np.uint32)
    >>> reads = [op for op in dis.get_instructions(f) if "uint32" in str(op.argval)]
    >>> [is_called(f.__code__, op.offset) for op in reads]
    [True, False]
    """
    ops = [op for op in dis.get_instructions(code) if op.opname not in _NO_MATTER]
    # 3.12 calls a `__getattribute__` of Python's from behind the instruction, in its cache, once it has done so often.
    here = max((k for k, op in enumerate(ops) if op.offset <= at), default=None)
    if here is None:
        return False
    name, arg = ops[here].opname, ops[here].arg or 0
    if name == "LOAD_METHOD" or ops[here + 1].opname == "PUSH_NULL":
        return True
    if name == "LOAD_GLOBAL":
        return bool(arg & 1)
    if name != "LOAD_ATTR" or ops[here + 1].opname == "LOAD_ATTR":
        return False
    if _FLAG and arg & 1:
        return True
    if not _NULL_FIRST:
        return False
    while here and ops[here].opname == "LOAD_ATTR":  # of a module: its name was read as that of a call
        here -= 1
    base = ops[here]
    before = here > 0 and ops[here - 1].opname == "PUSH_NULL"
    return before or (base.opname == "LOAD_GLOBAL" and bool((base.arg or 0) & 1))
