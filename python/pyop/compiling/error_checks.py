"""Functions that act on floating-point errors or warnings inside: a plan has neither where they stand.

``with np.errstate(divide="raise")`` and ``warnings.catch_warnings(record=True)`` act while the function runs. Traced,
it computes nothing yet, and a plan knows nothing of them later: it would go another way without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from .type_checks import functions_of, names_of

__all__ = ["refuse_error_handling"]

_checked: dict[CodeType, str | None] = {}


def refuse_error_handling(fn: Callable[..., Any]) -> None:
    """Raise if a function lets NumPy raise or call for floating-point errors, or reads warnings.

    Parameters
    ----------
    fn : callable

    Raises
    ------
    TypeError
        It says where, and what to write instead.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.compiling.error_checks import refuse_error_handling
    >>> def f(x):
    ...     with np.errstate(divide="raise"):
    ...         return 1 / x
    >>> refuse_error_handling(f)
    Traceback (most recent call last):
    TypeError: f (<...
    """
    for function in functions_of(fn):
        code = function.__code__
        if code not in _checked:
            _checked[code] = _found(code)
        if what := _checked[code]:
            raise TypeError(
                f"{function.__name__} ({code.co_filename}:{code.co_firstlineno}) {what}, which acts while the function "
                "is traced and nothing is computed yet, and not when the plan runs: write it around the call of the "
                "compiled function, or put this part into a pyop.op"
            )


def _found(code: CodeType) -> str | None:
    names, constants = set(names_of(code)), set(_texts(code))
    if "seterr" in names or "seterrcall" in names:
        return "calls np.seterr"
    if "errstate" in names and constants & {"raise", "call"}:
        return 'uses np.errstate with "raise" or "call"'
    if "catch_warnings" in names and ("error" in constants or "record" in constants):
        return "makes errors of warnings, or records them"
    return None


def _texts(code: CodeType) -> list[str]:
    """Texts among its constants, keywords of calls included."""
    found: list[str] = []
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.append(constant)
        elif isinstance(constant, tuple):
            found += [item for item in constant if isinstance(item, str)]
        elif isinstance(constant, CodeType):
            found += _texts(constant)
    return found
