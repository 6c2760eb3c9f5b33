"""Raise and track refusals: errors of symbolic or recorded arrays asked for values or memory that they lack.

A refusal is noted, so that a function that catches it does not go another way than it would with arrays without a word:
who traces or records the function calls it by `call_watched`, which raises the refusal in the end. A compiled function
runs itself then, with one warning that has the refusal's text. See csrc/runtime/refusal.h.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ._core import PyopError, call_watched, note_refusal

__all__ = [
    "call_watched",
    "is_of_state",
    "may_run_itself",
    "note_call",
    "noting",
    "of_state",
    "refusal",
    "refusal_of",
    "remedy_of_caller",
    "runs_itself",
    "was_refused",
]


def refusal(message: str, kind: type[Exception] = TypeError) -> Exception:
    """Return the exception to raise, recorded as a refusal.

    The message says what was asked for, why it cannot be had, and what to write instead.

    >>> from pyop.refusals import refusal
    >>> raise refusal("Value.tolist(): a Value has no numbers until its graph runs")
    Traceback (most recent call last):
    TypeError: Value.tolist(): a Value has no numbers until its graph runs
    """
    remedy = remedy_of_caller()
    error = kind(message if remedy is None else f"{message}; {remedy}")
    note_refusal(error)
    return error


def was_refused(error: BaseException) -> bool:
    """Return whether an error of a watched call is a refusal, or was caused by one.

    >>> from pyop.refusals import refusal, was_refused
    >>> was_refused(refusal("x.tolist()")), was_refused(TypeError("x.tolist()"))
    (True, False)
    """
    if any(getattr(at, "_pyop_refused", False) for at in _chain(error)):
        return True
    return any(note.startswith("after a refusal: ") for note in getattr(error, "__notes__", ()))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it, at most 20."""
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def refusal_of(error: BaseException) -> BaseException:
    """Return the refusal that caused an error; the error itself if none did."""
    return next((at for at in _chain(error) if getattr(at, "_pyop_refused", False)), error)


def may_run_itself(error: Exception) -> Exception:
    """Mark an error whose refused action the function itself may do: `pyop.compile` then runs the function.

    >>> from pyop.refusals import may_run_itself, runs_itself
    >>> runs_itself(may_run_itself(TypeError("x.shape = ..."))), runs_itself(TypeError("float(x)"))
    (True, False)
    """
    error._pyop_runs_itself = True  # type: ignore[attr-defined]
    return error


def of_state(message: str) -> TypeError:
    """Return the error of a trace that fails because of what the function holds, or does to that.

    With its state as inputs the function may be traced.

    >>> from pyop.refusals import is_of_state, of_state
    >>> is_of_state(of_state("compares an array that it holds")), is_of_state(TypeError("float(x)"))
    (True, False)
    """
    error = TypeError(message)
    error._pyop_of_state = True  # type: ignore[attr-defined]
    return error


def is_of_state(error: BaseException) -> bool:
    """Return whether `of_state` marked the error, or it is a refusal, or one that lets the function itself run."""
    return getattr(error, "_pyop_of_state", False) or runs_itself(error) or was_refused(error)


def runs_itself(error: BaseException) -> bool:
    """Return whether the function itself may do what an error refuses."""
    return getattr(error, "_pyop_runs_itself", False)


@contextmanager
def noting(kind: type[Exception]) -> Iterator[None]:
    """Record an error that the body raises as a refusal: one of a class that NumPy would not have raised there.

    >>> from pyop.refusals import noting
    >>> with noting(TypeError):
    ...     raise TypeError("np.foo has no gradient rule")
    Traceback (most recent call last):
    TypeError: np.foo has no gradient rule
    """
    try:
        yield
    except kind as error:
        note_refusal(error)
        raise


# What C functions, and those of the standard library, raise for an object that is none of NumPy's.
_ABOUT_TYPES = (TypeError, AttributeError, BufferError, struct.error)


# What np.nditer says, which asks nobody: of a Value that is to be written, and of one that is read.
_NDITER = ("cannot be written back to", "WRITEBACKIFCOPY")
_INSTEAD = (
    "write `for a in x.flat:`, or `for i in np.ndindex(x.shape):` with x[i], or use a pyop.op that goes through the "
    "elements and returns a new array"
)


def note_call(error: BaseException, call: str) -> None:
    """Add to an error of a user's function what was being traced or recorded (`call`).

    A remedy is added if another library asks for an array.

    >>> from pyop.refusals import note_call
    >>> error = TypeError("must be real number, not Value")
    >>> note_call(error, "pyop.trace called f")
    >>> error.__notes__
    ['while pyop.trace called f; a part that needs the numbers or the memory of an array belongs in an op: ...']
    """
    text = f"while {call}"
    if "no numbers until its graph runs" in str(error):
        text += "; an argument that decides what the function does must be static=, or a Python number"
    elif type(error) is TypeError and any(said in str(error) for said in _NDITER):
        text += f", at {_line_of(error)}; np.nditer needs memory, and a symbolic array has none: {_INSTEAD}"
    elif isinstance(error, _ABOUT_TYPES) and not isinstance(error, PyopError):
        text += (
            "; a part that needs the numbers or the memory of an array belongs in an op: declare it with @pyop.op "
            "and call that"
        )
    error.add_note(text)


def _line_of(error: BaseException) -> str:
    """Return ``file:line`` of the caller's own code that raised the error; empty if none did."""
    line = ""
    at = error.__traceback__
    while at is not None:
        if not at.tb_frame.f_globals.get("__name__", "").startswith(__package__):
            line = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
        at = at.tb_next
    return line


# What pyop.scipy has, by the module of SciPy (or the package) and the name of the function there.
_SPECIAL = ("logsumexp", "softmax", "log_softmax", "polygamma", "multigammaln")
_LINALG = ("expm", "sqrtm", "solve_sylvester", "solve_triangular", "solve_banded", "cho_factor", "cho_solve")
_DISTRIBUTIONS = ("norm", "t", "gamma", "beta", "chi2", "poisson")
_DENSITIES = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")


def remedy_of_caller() -> str | None:
    """Return the end of an error message that names a function of pyop.scipy to call instead, or None.

    There is one if a function of SciPy asks for the array, and pyop.scipy has a function of that name.
    """
    frame = sys._getframe(1)
    for _ in range(12):
        mirror = _mirror_of(frame)
        if mirror is not None:
            return f"here call pyop.scipy.{mirror} in place of SciPy's function: it takes Tensors and Values"
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def _mirror_of(frame: FrameType) -> str | None:
    # A decorator of SciPy's asks for the arrays of the function it calls `f`.
    decorated = frame.f_locals.get("f") if frame.f_globals.get("__name__", "").startswith("scipy._lib") else None
    module = getattr(decorated, "__module__", None) or frame.f_globals.get("__name__", "")
    name = getattr(decorated, "__name__", None) or frame.f_code.co_name
    package = module.split(".")[1:2] if module.startswith("scipy.") else []
    if package == ["special"] and name in _SPECIAL:
        return f"special.{name}"
    if package == ["linalg"] and name in _LINALG:
        return f"linalg.{name}"
    if package == ["signal"] and name == "convolve":
        return "signal.convolve"
    if package == ["stats"] and name in _DENSITIES:
        distribution = getattr(frame.f_locals.get("self"), "name", None)
        return f"stats.{distribution}.{name}" if distribution in _DISTRIBUTIONS else None
    return None
