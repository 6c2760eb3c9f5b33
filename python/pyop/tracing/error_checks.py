"""Find functions that act on floating-point errors or warnings inside: a plan has neither where they stand.

``with np.errstate(divide="raise")`` and ``warnings.catch_warnings(record=True)`` act while the function runs. Traced,
it computes nothing yet, and a plan knows nothing of them later: it would go another way without a word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from ..refusals import may_run_itself
from .code import facts
from .functions import functions_of

__all__ = [
    "ERRORS_RAISE",
    "OTHER_STATE",
    "catches_exceptions",
    "may_warn",
    "refuse_error_handling",
    "sets_error_state",
    "watch_error_state",
]


def refuse_error_handling(fn: Callable[..., Any], functions: Iterable[FunctionType] | None = None) -> None:
    """Raise if a function has NumPy raise or call for floating-point errors, or turns warnings into errors or records.

    `functions` are itself and all that it may call, if somebody has looked.

    >>> import numpy as np
    >>> from pyop.tracing.error_checks import refuse_error_handling
    >>> def f(x):
    ...     with np.errstate(divide="raise"):
    ...         return 1 / x
    >>> refuse_error_handling(f)
    Traceback (most recent call last):
    TypeError: f (<...
    """
    for function in functions_of(fn) if functions is None else functions:
        code = function.__code__
        if what := _found(code):
            from ..graph.cells import place_in

            error = TypeError(
                f"{function.__name__} ({place_in(code)}) {what}, which acts while the function "
                "is traced and nothing is computed yet, and not when the plan runs: write it around the call of the "
                "compiled function, or put this part into a pyop.op"
            )
            raise may_run_itself(error)


def catches_exceptions(functions: Iterable[FunctionType]) -> bool:
    """Return whether a function may catch what NumPy raises: by ``except``, or by a ``with`` that swallows it.

    Traced, nothing is computed yet, and a plan raises where nobody catches: then the function itself has to run. What
    it computes for the sake of the exception alone (``try: np.linalg.cholesky(a)``) has to be computed.

    >>> from pyop.tracing.error_checks import catches_exceptions
    >>> def f(a):
    ...     try:
    ...         return np.linalg.inv(a)
    ...     except np.linalg.LinAlgError:
    ...         return a
    >>> catches_exceptions([f]), catches_exceptions([catches_exceptions])
    (True, False)
    """
    return any(map(_catches, functions))


def _catches(function: FunctionType) -> bool:
    return facts(function.__code__).catches


ERRORS_RAISE = 2
"""As `sets_error_state` says, of a function whose plan is left where it has floating-point errors."""

OTHER_STATE = 6
"""As `sets_error_state` says, of a function that has set NumPy's state of errors while it was traced."""

# NumPy's context variable, which np.errstate sets, under whatever name.
_ERROR_STATE: Any = getattr(sys.modules.get("numpy._core.umath"), "_extobj_contextvar", None)


def watch_error_state(graph: Any) -> None:
    """Have a graph see whether calls are added to it in another state of errors than now (``graph._crossed()``)."""
    if _ERROR_STATE is not None:
        graph._watch(_ERROR_STATE)


def sets_error_state(functions: Iterable[FunctionType]) -> int:
    """Return 2 if a function names ``np.errstate`` or filters warnings, 6 if it sets the state of underflow, else 0.

    A plan knows nothing of either. So it runs with floating-point errors raising, and where one does the function
    itself runs. Who sets the state under another name (by a decorator, a method of what it holds) the graph sees.

    >>> from pyop.tracing.error_checks import sets_error_state
    >>> def f(x):
    ...     with np.errstate(divide="ignore"):
    ...         return 1 / x
    >>> sets_error_state([f]), sets_error_state([sets_error_state])
    (2, 0)
    """
    found = 0
    for function in functions:
        known = facts(function.__code__)
        if "errstate" in known.names:
            found |= OTHER_STATE if known.texts & {"all", "under"} else ERRORS_RAISE
        elif "catch_warnings" in known.names:
            found |= ERRORS_RAISE
    return found


def may_warn(functions: Iterable[FunctionType]) -> bool:
    """Return whether the functions may compute something of what they hold, and none asks for NumPy's state of errors.

    >>> import numpy as np
    >>> from pyop.tracing.error_checks import may_warn
    >>> def f(x):
    ...     return x if np.geterr()["divide"] == "warn" else -x
    >>> may_warn([f]), may_warn([lambda x: x * np.log(0)]), may_warn([lambda x: x + x])
    (False, True, False)
    """
    held = False
    for function in functions:
        known = facts(function.__code__)
        if not _READERS.isdisjoint(known.names):
            return False
        held = held or bool(known.names or function.__closure__)
    return held


_READERS = frozenset(("geterr", "geterrcall"))
_NAMED = frozenset(("seterr", "seterrcall", "errstate", "catch_warnings"))


def _found(code: CodeType) -> str | None:
    names, constants = facts(code).names, facts(code).texts
    if names.isdisjoint(_NAMED):
        return None
    if "seterr" in names or "seterrcall" in names:
        return "calls np.seterr"
    if "errstate" in names and constants & {"raise", "call"}:
        return 'uses np.errstate with "raise" or "call"'
    if "catch_warnings" in names and ("error" in constants or "record" in constants):
        return "makes errors of warnings, or records them"
    return None
