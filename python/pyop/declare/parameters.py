"""Read the parameters of a Python callable: arrays, static ones, and ``out``."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from enum import IntEnum
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from .._core import NativeKernel

__all__ = ["OutMode", "Parameters", "check_by_name", "check_name", "default_name"]


class OutMode(IntEnum):
    """Number the ways in which a function takes the keyword-only parameter ``out``; the C++ enum of the same name."""

    NONE = 0
    OPTIONAL = 1
    REQUIRED = 2


class Parameters(NamedTuple):
    """Hold the parameters of a callable, sorted as `pyop.op` understands them."""

    arrays: tuple[str, ...] = ()
    n_required: int = 0
    defaults: tuple[Any, ...] = ()
    variadic: bool = True
    statics: tuple[str, ...] = ()
    required_statics: tuple[str, ...] = ()
    any_static: bool = True
    out_mode: OutMode = OutMode.NONE
    is_method: bool = False
    by_name: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fn: Callable[..., Any]) -> Parameters:
        """Return the parameters of `fn`; any arrays and keywords for a builtin without a signature."""
        if type(fn) is FunctionType and not fn.__dict__:  # no signature of another function's, or of its own
            return cls._of_function(fn)
        if isinstance(fn, NativeKernel):
            names = fn.parameters
            return cls(names, len(names), variadic=False, any_static=False, out_mode=OutMode.OPTIONAL)
        try:
            signature = inspect.signature(fn)
        except (ValueError, TypeError):
            return cls._of_ufunc(fn) if isinstance(fn, np.ufunc) else cls()
        kinds = inspect.Parameter
        entries = list(signature.parameters.values())
        positional = [p for p in entries if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
        is_method = _declared_in_class(fn) and bool(positional) and positional[0].name in ("self", "cls")
        if is_method:
            positional = positional[1:]
        keyword_only = [p for p in entries if p.kind is kinds.KEYWORD_ONLY]
        out = next((p for p in keyword_only if p.name == "out"), None)
        statics = [p for p in keyword_only if p.name != "out"]
        defaults = tuple(p.default for p in positional if p.default is not kinds.empty)
        return cls(
            arrays=tuple(p.name for p in positional),
            n_required=len(positional) - len(defaults),
            defaults=defaults,
            variadic=any(p.kind is kinds.VAR_POSITIONAL for p in entries),
            statics=tuple(p.name for p in statics),
            required_statics=tuple(p.name for p in statics if p.default is kinds.empty),
            any_static=any(p.kind is kinds.VAR_KEYWORD for p in entries),
            out_mode=_out_mode(out),
            is_method=is_method,
            by_name=frozenset(p.name for p in positional if p.kind is kinds.POSITIONAL_OR_KEYWORD),
        )

    @classmethod
    def _of_ufunc(cls, fn: np.ufunc) -> Parameters:
        """Return the parameters of a ufunc; older releases of NumPy give ufuncs no signature."""
        arrays = ("x",) if fn.nin == 1 else tuple(f"x{k + 1}" for k in range(fn.nin))
        how = ("where",) if fn.signature is None else ("axes", "axis", "keepdims")
        return cls(
            arrays=(*arrays, "out"),
            n_required=fn.nin,
            defaults=(None if fn.nout == 1 else (None,) * fn.nout,),
            variadic=False,
            statics=(*how, "casting", "order", "dtype", "subok", "signature"),
            any_static=False,
            by_name=frozenset(("out",)),
        )

    @classmethod
    def _of_function(cls, fn: FunctionType) -> Parameters:
        """Return the parameters from the code object: making a signature takes longer than tracing a short function."""
        code, defaults = fn.__code__, fn.__defaults__ or ()
        n, n_by_name = code.co_argcount, code.co_kwonlyargcount
        positional, keyword_only = code.co_varnames[:n], code.co_varnames[n : n + n_by_name]
        by_name = frozenset(positional[code.co_posonlyargcount :])
        is_method = _declared_in_class(fn) and bool(positional) and positional[0] in ("self", "cls")
        if is_method:
            by_name, defaults = by_name - {positional[0]}, defaults[-(n - 1) :] if n > 1 else ()
            positional = positional[1:]
        given = fn.__kwdefaults__ or {}
        statics = keyword_only if "out" not in keyword_only else tuple(name for name in keyword_only if name != "out")
        out = OutMode.NONE if len(statics) == n_by_name else OutMode.OPTIONAL if "out" in given else OutMode.REQUIRED
        return cls(  # by position: a named tuple takes a third of the time
            positional,
            len(positional) - len(defaults),
            defaults,
            bool(code.co_flags & inspect.CO_VARARGS),
            statics,
            tuple([name for name in statics if name not in given]),
            bool(code.co_flags & inspect.CO_VARKEYWORDS),
            out,
            is_method,
            by_name,
        )

    def as_method(self) -> Parameters:
        """Return the same function as a method of its first parameter.

        >>> from pyop.declare.parameters import Parameters
        >>> Parameters.of(lambda model, x, step=0.1: x).as_method().arrays
        ('x', 'step')
        """
        n_required = max(self.n_required - 1, 0)
        rest = self.arrays[1:]
        defaults = self.defaults[len(self.defaults) - (len(rest) - n_required) :]
        by_name = self.by_name - {*self.arrays[:1]}
        return self._replace(arrays=rest, n_required=n_required, defaults=defaults, is_method=True, by_name=by_name)

    def declared(self, n: int) -> Parameters:
        """Return the parameters with the first `n` as arrays; those behind, which have defaults, become static."""
        rest = self.arrays[n:]
        if not rest:
            return self
        static = tuple(name for name in rest if name in self.by_name and name != "out")
        kept = max(0, len(self.defaults) - len(rest))
        return self._replace(arrays=self.arrays[:n], defaults=self.defaults[:kept], statics=static + self.statics)


def check_by_name(rule: Callable[..., Any], what: str, statics: tuple[str, ...]) -> None:
    """Raise for a rule that takes a static parameter by position, where it would always keep its default."""
    try:
        entries = inspect.signature(rule).parameters.values()
    except (ValueError, TypeError):
        return
    for p in entries:
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty and p.name in statics:
            raise TypeError(
                f"{what} has {p.name!r} by position, where it gets arrays, but it is static in the op: write "
                f"`*, {p.name}={p.default!r}`"
            )


def _out_mode(out: inspect.Parameter | None) -> OutMode:
    if out is None:
        return OutMode.NONE
    return OutMode.REQUIRED if out.default is inspect.Parameter.empty else OutMode.OPTIONAL


def _declared_in_class(fn: Callable[..., Any]) -> bool:
    if not inspect.isfunction(fn):
        return False
    scope = fn.__qualname__.rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>")


def default_name(fn: Callable[..., Any]) -> str:
    """Return a node name for a callable: its name in the source, with only the letters a name may have."""
    inner: Any = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", None) or type(inner).__name__
    text = str(name)
    # The first regular expression of a process takes longer to compile than a short function takes to trace.
    return text if text.isidentifier() else re.sub(r"\W+", "", text) or "op"


# TensorFlow's rule for names, and Python identifiers of any alphabet.
_NAME = r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*"


def check_name(name: Any) -> str:
    """Return a name given by the user; TypeError or ValueError, with the reason, if it cannot be one."""
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, got {type(name).__name__} {name!r:.80}")
    if not (name.isidentifier() or re.fullmatch(_NAME, name)):
        raise ValueError(
            f"{name!r:.80} is not a valid name: it must begin with a letter, a digit or a dot, "
            r"and go on with these and _ . \ / > -"
        )
    return name
