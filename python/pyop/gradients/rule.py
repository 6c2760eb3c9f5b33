"""Define the forms of rules: one derivative for each argument, or one function of the cotangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from . import table
from .options import OPTIONS, check_options, computed_with
from .signed import Signed, plain
from .table import NoRule, Place, Pullback, Rule, name_of
from .unbroadcast import conj, fit_dtype, is_complex, may_stay, shape_of, unbroadcast, unbroadcast_loosely

__all__ = [
    "Part",
    "PerArgument",
    "defjvp",
    "defvjp",
    "elementwise",
    "linear",
    "nondifferentiable",
    "structural",
    "unknown",
]

_REMEDY = ": keep it constant, or give the function a rule of your own with pyop.defvjp"
Derivative = Any  # None, a number, or a callable of (t, ans, *args)


def unknown(t: Any, ans: Any, *args: Any, **kwargs: Any) -> Any:
    """Raise NoRule: the derivative by this argument is not known."""
    raise NoRule("no derivative by this argument is known: give it one with pyop.defvjp")


def _known(func: Any, derivatives: Sequence[Any], k: int, names: Sequence[str] = ()) -> Any:
    """Return the derivative by argument `k`, which is an error where nobody knows it."""
    derivative = derivatives[k]
    if derivative is unknown:
        name, label = name_of(func), f" ({names[k]})" if k < len(names) else ""
        raise NoRule(
            f"{name} has no gradient rule for argument {k}{label}, whose derivative has no closed form: keep that "
            f"argument constant, give it a rule with pyop.defvjp({name}, ...), or call {name} in a "
            'pyop.op(..., grad="fd"), which takes differences'
        )
    return derivative


# Ufuncs whose rules only negate a tangent, and multiply and divide it by something: Signed can do that.
_SIGN_SYMMETRIC = """
    positive negative add subtract multiply divide reciprocal square sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin
    cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh arctan2 hypot power float_power
"""
SIGN_SYMMETRIC = frozenset(_SIGN_SYMMETRIC.split())


class Elementwise(Rule):
    """Differentiate a ufunc by what a tangent of each argument becomes.

    Each is a function of ``(t, ans, *args)`` that multiplies `t` by the derivative (of a holomorphic function), a
    number to multiply by, or None for zero. The cotangent is multiplied by the conjugate of the derivative: the
    conjugate of that function of the conjugate cotangent.
    """

    broadcasts = True

    def __init__(self, func: Any, derivatives: Sequence[Derivative]) -> None:
        super().__init__(func)
        self.derivatives = tuple(derivatives)
        name = getattr(func, "__name__", "")
        self.sign_symmetric = name in SIGN_SYMMETRIC and getattr(np, name) is func

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "array" if isinstance(parameter, int) else ""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        given = args
        if kwargs:
            check_options(self.func, args, kwargs)
            given = computed_with(args, kwargs)

        def one(ct: Any, k: int) -> Any:
            derivative = _known(self.func, self.derivatives, k)
            gradient = None if derivative is None else _adjoint(derivative, ct, ans, given)
            if gradient is not None and shape_of(gradient) and _has_shape_of_result(gradient, args, k, ans):
                return fit_dtype(gradient, args[k])
            return unbroadcast_loosely(gradient, args[k], ans)

        return lambda ct: tuple([one(ct, k) for k in argnums])

    def signed(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], ct: Signed) -> tuple[Any, ...]:
        """Return cotangents as `vjp` for a ufunc of `SIGN_SYMMETRIC`, with the sign kept apart."""

        def one(k: int) -> Any:
            derivative = _known(self.func, self.derivatives, k)
            gradient = None if derivative is None else _times(derivative, ct, ans, args)
            if gradient is None or not _has_shape_of_result(gradient.value, args, k, ans):
                return unbroadcast_loosely(plain(gradient), args[k], ans)
            return Signed(fit_dtype(gradient.value, args[k]), gradient.negated)

        return tuple(map(one, argnums))

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if kwargs:
            check_options(self.func, args, kwargs)
            args = computed_with(args, kwargs)
        total = None
        for k, tangent in zip(argnums, tangents, strict=True):
            d = _known(self.func, self.derivatives, k)
            if d is not None:
                part = _times(d, tangent, ans, args)
                total = part if total is None else total + part
        return None if total is None else unbroadcast(total, ans, ans)


def _has_shape_of_result(found: Any, args: tuple[Any, ...], k: int, ans: Any) -> bool:
    """Return whether argument `k` of a ufunc is as large as the result; a smaller one broadcasts to it.

    Where sizes are not known, it is so if the other arguments are numbers.
    """
    want = shape_of(args[k])
    if want is None or want != shape_of(ans):
        return False
    return all(shape_of(x) == () for i, x in enumerate(args) if i != k) or may_stay(found, args[k], ans)


def _times(derivative: Derivative, t: Any, ans: Any, args: tuple[Any, ...]) -> Any:
    if isinstance(derivative, (int, float)):
        return t if derivative == 1 else -t if derivative == -1 else t * derivative
    return derivative(t, ans, *args)


def _adjoint(derivative: Derivative, ct: Any, ans: Any, args: tuple[Any, ...]) -> Any:
    if is_complex(ans) is False:
        return _times(derivative, ct, ans, args)
    product = _times(derivative, conj(ct), ans, args)
    return None if product is None else conj(product)


class PerArgument(Rule):
    """Differentiate a function by one vjp and one jvp for each argument.

    For each positional parameter `vjps` has a function of ``(ct, ans, *args, **kwargs)``, or None where no gradient
    flows. `jvps` likewise has one of ``(tangent, ans, *args, **kwargs)``, or "same" where the function is linear in the
    argument. `names` of the parameters are for arguments given by keyword. `fits` converts a cotangent to the dtype
    (and shape) of its argument.
    """

    def __init__(
        self, func: Any, vjps: Sequence[Any] | None, jvps: Sequence[Any] | None = None, names: Sequence[str] = (),
        fits: Callable[[Any, Any, Any], Any] = fit_dtype,
    ) -> None:  # fmt: skip
        super().__init__(func)
        self.vjps = vjps
        self.jvps = jvps
        self.names = tuple(names)
        self.fits = fits

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if isinstance(parameter, str):
            if parameter not in self.names:
                return ""
            parameter = self.names.index(parameter)
        known = (functions for functions in (self.vjps, self.jvps) if functions is not None)
        return "array" if any(parameter < len(fs) and fs[parameter] is not None for fs in known) else ""

    def position(self, place: Place) -> int:
        """Return the parameter that an argument is for."""
        if isinstance(place.argument, int):
            return place.argument
        if place.argument in self.names:
            return self.names.index(place.argument)
        raise NoRule(f"{name_of(self.func)} has no gradient rule for its argument {place.argument!r}{_REMEDY}")

    def _options(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords that its rules see: not those that every elementwise ufunc has."""
        if not kwargs or not isinstance(self.func, np.ufunc) or self.func.signature is not None:
            return kwargs
        check_options(self.func, args, kwargs)
        return {key: value for key, value in kwargs.items() if key not in OPTIONS}

    def _of(self, functions: Sequence[Any], place: Place) -> Any:
        position = self.position(place)
        if position >= len(functions):
            raise NoRule(f"{name_of(self.func)} has no gradient rule for argument {position}{_REMEDY}")
        return _known(self.func, functions, position, self.names)

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        if self.vjps is None:
            self.refuse("reverse mode", "defvjp")
        where = _places(argnums, args, kwargs)
        functions = [self._of(self.vjps, place) for place in where]
        likes = [args[p.argument] if isinstance(p.argument, int) else kwargs[p.argument] for p in where]
        options = self._options(args, kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            return tuple(
                [
                    None if f is None else self.fits(_asked(self.func, f, ct, ans, args, options), like, ans)
                    for f, like in zip(functions, likes, strict=True)
                ]
            )

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if self.jvps is None:
            self.refuse("forward mode", "defjvp")
        total = None
        for place, tangent in zip(_places(argnums, args, kwargs), tangents, strict=True):
            f = self._of(self.jvps, place)
            if f is None:
                continue
            if f == "same":
                part = _call(self.func, *_replaced(args, kwargs, place, tangent))
            else:
                part = _asked(self.func, f, tangent, ans, args, self._options(args, kwargs))
            total = part if total is None else _sum(total, part)
        return total


class Part(PerArgument):
    """Differentiate indexing, whose cotangents are sums of parts of zeros (`transforms/parts.py`)."""

    of_parts = True


def _asked(func: Any, f: Any, ct: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a rule; raise an error that names the call if the rule does not take its arguments."""
    try:
        return f(ct, ans, *args, **kwargs)
    except TypeError as error:
        trace = error.__traceback__
        if trace is not None and trace.tb_next is None:
            _refuse_call(func, kwargs, error)
        raise


def _refuse_call(func: Any, kwargs: dict[str, Any], error: TypeError) -> NoReturn:
    called = ", ".join(f"{key}=..." for key in kwargs) or "..."
    name = name_of(func)
    raise NoRule(
        f"{name}({called}) has no gradient rule for these arguments ({str(error).partition('()')[2].strip()}): leave "
        f"out what its rule does not know, or give it one of your own with pyop.defvjp({name}, ...)"
    ) from error


def _places(argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Place]:
    if not kwargs and not any(isinstance(argument, (tuple, list, dict)) for argument in args):
        return [Place(k, 0) for k in argnums]
    where = table.places(args, kwargs)
    return [where[k] for k in argnums]


def _replaced(args: tuple[Any, ...], kwargs: dict[str, Any], place: Place, tangent: Any) -> Any:
    if isinstance(place.argument, int):
        return (*args[: place.argument], tangent, *args[place.argument + 1 :]), kwargs
    return args, {**kwargs, place.argument: tangent}


def _call(func: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(func, tuple):
        func = getattr(*func)
    return func(*args, **kwargs)


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True))
    return b if a is None else a if b is None else a + b


class NotDifferentiable(Rule):
    """Give zero derivatives to a function that is constant or jumps where its arguments change a little."""

    differentiable = False

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        return lambda ct: (None,) * len(argnums)

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return (None,) * len(ans) if isinstance(ans, tuple) else None


# --- entries of the table


def elementwise(func: Any, *derivatives: Derivative) -> None:
    """Add the rule of a ufunc, by what the tangent of each argument becomes; see `Elementwise`."""
    table.add(Elementwise(func, derivatives))


def derivatives_of(func: Any) -> tuple[Derivative, ...]:
    """Return what `elementwise` was given for a function."""
    rule = table.lookup(func)
    assert isinstance(rule, Elementwise)
    return rule.derivatives


def linear(func: Any, vjp: Callable[..., Any], names: Sequence[str] = ("a",)) -> None:
    """Add the rule of a function that is linear in its first argument, by its adjoint."""
    table.add(PerArgument(func, (vjp,), ("same",), names))


def structural(func: Any, vjps: Sequence[Any], jvps: Sequence[Any] | None, names: Sequence[str]) -> None:
    """Add the rule of a function, by a vjp and a jvp for each parameter."""
    table.add(PerArgument(func, vjps, jvps, names))


def spreading(func: Any, vjp: Callable[..., Any], jvp: Any, narrow: Callable[..., Any], names: Sequence[str]) -> None:
    """Add the rule of a reduction; `narrow` is its vjp without laying the cotangent out."""
    rule = PerArgument(func, (vjp,), (jvp,), names)
    rule.narrow = PerArgument(func, (narrow,), None, names)
    rule.narrow.narrows = True
    table.add(rule)


def nondifferentiable(*functions: Any) -> None:
    """Add functions that are constant wherever they have a derivative."""
    for func in functions:
        table.add(NotDifferentiable(func))


def defvjp(func: Any, *vjps: Callable[..., Any] | None) -> None:
    """Set the gradient rule of a function for reverse mode.

    Parameters
    ----------
    func : callable
        A ufunc, a NumPy function, or a function that takes part in NumPy's protocols.
    *vjps : callable or None
        One for each positional argument, called as ``vjp(ct, ans, *args, **kwargs)`` with the cotangent of the result
        and the result itself; returns the cotangent of the argument, which is summed over the axes along which the
        argument was broadcast. None: no gradient flows to this argument. Write it with NumPy functions, and it serves
        arrays, graphs and second derivatives.

    Raises
    ------
    TypeError
        Something that is not callable.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> cube = np.frompyfunc(lambda x: x**3, 1, 1)
    >>> pyop.defvjp(cube, lambda ct, ans, x: ct * 3 * x**2)
    """
    _define(func, vjps, "vjps")


def defjvp(func: Any, *jvps: Callable[..., Any] | str | None) -> None:
    """Set the gradient rule of a function for forward mode.

    Parameters
    ----------
    func : callable
        As for `defvjp`.
    *jvps : callable, "same" or None
        One for each positional argument, called as ``jvp(tangent, ans, *args, **kwargs)``; returns what the tangent of
        this argument adds to that of the result. "same" for an argument in which the function is linear; None for one
        that does not matter.

    Raises
    ------
    TypeError
        Something that is not callable.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> cube = np.frompyfunc(lambda x: x**3, 1, 1)
    >>> pyop.defjvp(cube, lambda t, ans, x: t * 3 * x**2)
    """
    _define(func, jvps, "jvps")


def _define(func: Any, functions: Sequence[Any], kind: str) -> None:
    if not callable(func) and not isinstance(func, tuple):
        raise TypeError(f"def{kind[:-1]} takes a function, got {type(func).__name__} {func!r:.80}")
    for f in functions:
        if not (f is None or callable(f) or (f == "same" and kind == "jvps")):
            raise TypeError(f"def{kind[:-1]}: a rule is a function or None, got {type(f).__name__} {f!r:.80}")
    existing = table.lookup(func)
    if isinstance(existing, PerArgument) and type(existing) in (PerArgument, Part):
        rule = PerArgument(func, existing.vjps, existing.jvps, existing.names, existing.fits)
    else:
        rule = PerArgument(func, None, None, (), unbroadcast)
    setattr(rule, kind, tuple(functions))
    table.add(rule)
