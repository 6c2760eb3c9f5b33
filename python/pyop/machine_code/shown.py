"""Show what the loops of a plan are compiled to: `Plan.machine_code`."""

from __future__ import annotations

from collections.abc import Iterator

from .._core import Plan
from .compiler import assembly as assembly_of
from .compiler import why_missing

__all__ = ["machine_code"]

_STATES = {
    "cold": "interpreted, not hot",
    "waiting": "interpreted, waiting for machine code",
    "ready": "machine code",
    "refused": "interpreted",
}


def machine_code(self: Plan, *, assembly: bool = False) -> str:
    """Show what the loops of the plan are compiled to, and which of them run so.

    Parameters
    ----------
    assembly : bool
        Instructions of the processor in place of LLVM's IR. It takes as long as to compile them.

    Returns
    -------
    str
        One part for each loop, and for each other stretch of operations on single elements.

    Raises
    ------
    ModuleNotFoundError
        Assembly needs llvmlite.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> def running(x):
    ...     total = x[0] * 0.0
    ...     for i in range(len(x)):
    ...         total = total * 0.5 + x[i]
    ...     return total
    >>> f = pyop.compile(running)
    >>> f(np.ones(2000))
    np.float64(2.0)
    >>> print(f.plan_for(np.ones(2000)).machine_code())  # doctest: +SKIP
    loop, line 3 of example.py: interpreted, not hot; 4 operations
    ...
    """
    if assembly and (why := why_missing()):
        raise ModuleNotFoundError(why)
    return "\n\n".join(_parts(self, assembly))


def _parts(plan: Plan, assembly: bool) -> Iterator[str]:
    for node, code in plan._machine_code():
        file, _, line = node.origin.rpartition(":")
        place = f", line {line} of {file}" if line.isdecimal() else ""
        why = f": {code.why_not}" if code.why_not else ""
        text = f"{node.name}{place}: {_STATES[code.state]}{why}; {code.operations} operations"
        if code.ir:
            text += "\n\n" + (assembly_of(code.ir) if assembly else code.ir)
        yield text


# The type itself comes from the core, without this (`graph/__init__.py`).
setattr(Plan, "machine_code", machine_code)  # noqa: B010
