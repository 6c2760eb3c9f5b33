"""Keep the exceptions of calls that JAX makes: XLA passes on their text alone, by which they are found.

The last 32 are kept, with what their tracebacks hold. Any thread.
"""

from __future__ import annotations

import itertools
import re
import threading
import traceback
from collections import OrderedDict

__all__ = ["CallFailed", "exception_of", "words"]

_MOST = 32
_lock = threading.Lock()
_kept: OrderedDict[int, BaseException] = OrderedDict()
_numbers = itertools.count(1)


class CallFailed(RuntimeError):
    """Report a failed callback to JAX; its cause is the function's exception."""


def words(exception: BaseException, keep: bool = True) -> str:
    """Return the text of an exception for XLA, by which `exception_of` finds it."""
    text = "".join(traceback.format_exception_only(exception)).strip()
    if not keep:
        return text
    number = next(_numbers)
    with _lock:
        _kept[number] = exception
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return f"{text}\n  [pyop exception {number}]"


def exception_of(error: BaseException) -> BaseException | None:
    """Return the exception behind an error that JAX raised, or None.

    Parameters
    ----------
    error : BaseException
        A ``JaxRuntimeError``, also one of `jax.block_until_ready`; or the ``ValueError`` of these words that JAX raises
        where a function under `jax.jit` is called once more.

    Returns
    -------
    BaseException or None
        What the function of the op, or the plan, has raised; None if `error` is none of pyop's, or too many came after.

    Examples
    --------
    >>> from pyop.interop.jax import exception_of  # doctest: +SKIP
    >>> try:  # doctest: +SKIP
    ...     jax.jit(wrap(op))(x).block_until_ready()
    ... except (jax.errors.JaxRuntimeError, ValueError) as error:
    ...     raise exception_of(error) from None
    """
    numbers = re.findall(r"\[pyop exception (\d+)\]", str(error))
    with _lock:
        return _kept.get(int(numbers[-1])) if numbers else None
