"""Functions with their exact derivatives in the forms that SciPy's solvers call them by.

What SciPy asks for beside a function, a gradient, a Jacobian or a Hessian, it estimates by differences where it is not
given: a call for each variable, and half of the digits. Here each is derived from the function and compiled, together
with the function where SciPy asks for both, so that what they share is computed once.

>>> import numpy as np
>>> from scipy.optimize import minimize
>>> from pyop.interop.scipy import objective
>>> def rosenbrock(x):
...     return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
>>> found = minimize(objective(rosenbrock), np.zeros(3), jac=True)
>>> found.x.round(4)
array([1., 1., 1.])

The solvers' own arguments go on as they are: ``args=`` of `minimize`, `root`, `solve_ivp` and ``kwargs=`` of
`least_squares` reach the function behind what it is differentiated by. Nothing here imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from ..compiling import front
from ..gradients.table import NoRule
from ..graph.graph import twinned
from ..transforms.transforms import grad, hessian, hvp, jacobian, value_and_grad

__all__ = ["Objective", "Residuals", "RightHandSide", "objective", "residuals", "rhs"]


class _Differentiated:
    """A function, and what `pyop.compile` is to make of it."""

    def __init__(self, f: Callable[..., Any], options: dict[str, Any]) -> None:
        if not callable(f):
            raise TypeError(f"{type(self).__name__} is made of a function, got {type(f).__name__}")
        self._f = f
        self._options = options
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if hasattr(f, name):
                setattr(self, name, getattr(f, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._f, self._options)  # compiled anew where it arrives

    def _placed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in the places that they have in the function: only there an array is one to `pyop.compile`."""
        if not kwargs:
            return args, kwargs
        bound = signature(self._f).bind(*args, **kwargs)
        return bound.args, bound.kwargs

    def _compiled(self, f: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = front.compile(f, **self._options)
        return compiled

    def __repr__(self) -> str:
        return f"<pyop.interop.scipy.{type(self).__name__} of {getattr(self, '__name__', self._f)!r}>"


class Objective(_Differentiated):
    """What `objective` makes. Its methods take what the function takes, and are compiled when they are first called."""

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> tuple[float, Any]:
        """Value and gradient, of one forward pass: for ``jac=True``."""
        args, kwargs = self._placed((x, *args), kwargs)
        value, gradient = self._both(*args, **kwargs)
        return float(value), gradient

    @cached_property
    def _both(self) -> Callable[..., Any]:
        return self._compiled(value_and_grad(self._f))

    @cached_property
    def value(self) -> Callable[..., Any]:
        """``value(x, *args)``: what the function returns."""
        return self._compiled(self._f)

    @cached_property
    def gradient(self) -> Callable[..., Any]:
        """``gradient(x, *args)``, of shape ``(n,)``: for ``jac=``."""
        return self._compiled(grad(self._f))

    @cached_property
    def hessian(self) -> Callable[..., Any]:
        """``hessian(x, *args)``, of shape ``(n, n)``: for ``hess=``."""
        return self._compiled(hessian(self._f))

    @cached_property
    def hessp(self) -> Callable[..., Any]:
        """``hessp(x, p, *args)``, of shape ``(n,)``: the Hessian times a vector, without it, for ``hessp=``."""

        f = self._f

        def product(x: Any, p: Any, *args: Any) -> Any:
            return hvp(lambda y: twinned(f)(y, *args), (x,), (p,))

        return self._compiled(product)


class Residuals(_Differentiated):
    """What `residuals` makes. Its methods take what the function takes, and are compiled when they are first called."""

    _place = 0  # of what it is differentiated by
    _fewer_variables: bool | None = None  # than values; known from the first call on

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, as an array."""
        args, kwargs = self._placed((x, *args), kwargs)
        return self._values(*args, **kwargs)

    def jac(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, of shape ``(m, n)``: for ``jac=``."""
        return self._by_size(self._jacobians, *self._placed((x, *args), kwargs))

    def both(self, x: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return values and Jacobian, of one forward pass: for ``jac=True`` of `root`."""
        values, derivatives = self._by_size(self._pairs, *self._placed((x, *args), kwargs))
        return values, derivatives

    def _by_size(self, ways: dict[str, Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # A pass for each variable or for each value, whichever are fewer; rules may be missing for one of both.
        if self._fewer_variables is None:
            self._fewer_variables = np.size(args[self._place]) <= np.size(self._values(*args, **kwargs))
        modes = ("forward", "reverse") if self._fewer_variables else ("reverse", "forward")
        try:
            return ways[modes[0]](*args, **kwargs)
        except NoRule:
            self._fewer_variables = modes[1] == "forward"
            return ways[modes[1]](*args, **kwargs)

    @cached_property
    def _array(self) -> Callable[..., Any]:
        f, name = self._f, getattr(self, "__name__", "the function")

        def array(*args: Any, **kwargs: Any) -> Any:
            values = twinned(f)(*args, **kwargs)
            values = np.stack(values) if isinstance(values, list | tuple) else np.atleast_1d(values)
            if values.ndim > 1:
                raise TypeError(f"{name} returned values of shape {values.shape}: SciPy takes one axis of them, (m,)")
            return values

        array.__name__ = name
        return array

    @cached_property
    def _values(self) -> Callable[..., Any]:
        return self._compiled(self._array)

    @cached_property
    def _jacobians(self) -> dict[str, Callable[..., Any]]:
        return {mode: self._compiled(jacobian(self._array, self._place, mode=mode)) for mode in ("forward", "reverse")}

    @cached_property
    def _pairs(self) -> dict[str, Callable[..., Any]]:
        def pair(mode: Any) -> Callable[..., Any]:
            f, derivatives = self._array, jacobian(self._array, self._place, mode=mode)
            return lambda *args, **kwargs: (f(*args, **kwargs), derivatives(*args, **kwargs))  # equal nodes become one

        return {mode: self._compiled(pair(mode)) for mode in ("forward", "reverse")}


class RightHandSide(Residuals):
    """What `rhs` makes: as `Residuals`, of ``f(t, y, *args)``, differentiated by ``y``."""

    _place = 1
    _fewer_variables = True  # as many of one as of the other


def objective(f: Callable[..., Any], **options: Any) -> Objective:
    """Return a function with its gradient, for `scipy.optimize.minimize` and its relatives.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` of a float64 array of shape ``(n,)``, that returns one number.
    **options
        Those of `pyop.compile`, such as ``fallback=True``.

    Returns
    -------
    Objective
        Called as `f`, it returns ``(value, gradient)``, as ``minimize(..., jac=True)`` wants them. It has the methods
        ``value(x, *args)``, ``gradient(x, *args)``, ``hessian(x, *args)`` and ``hessp(x, p, *args)``.

    Raises
    ------
    TypeError
        When it is called: `f` does not return one number, or cannot be differentiated or compiled; the error says why.
    NoRule
        When it is called: a function in `f` has no rule for derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.interop.scipy import objective
    >>> fun = objective(lambda x, a: np.sum((x - a) ** 4))
    >>> fun(np.zeros(2), 1.0)
    (2.0, array([-4., -4.]))
    >>> fun.hessp(np.zeros(2), np.ones(2), 1.0)
    array([12., 12.])
    """
    return Objective(f, options)


def residuals(f: Callable[..., Any], **options: Any) -> Residuals:
    """Return a function with its Jacobian, for `scipy.optimize.least_squares` and `scipy.optimize.root`.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` of a float64 array of shape ``(n,)``, that returns an array of shape ``(m,)``, or a list or
        tuple of m numbers.
    **options
        Those of `pyop.compile`, such as ``fallback=True``.

    Returns
    -------
    Residuals
        Called as `f`, it returns the values; ``jac(x, *args)`` is the Jacobian of shape ``(m, n)``, and ``both(x,
        *args)`` returns values and Jacobian, computed together. It takes a pass for each variable, or for each value,
        whichever are fewer at the first call.

    Raises
    ------
    TypeError, NoRule
        As for `objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import least_squares, root
    >>> from pyop.interop.scipy import residuals
    >>> t = np.linspace(0, 1, 20)
    >>> fun = residuals(lambda x, t, y: x[0] * np.exp(-x[1] * t) - y)
    >>> least_squares(fun, [1.0, 1.0], jac=fun.jac, args=(t, 2 * np.exp(-3 * t))).x.round(6)
    array([2., 3.])
    >>> root(residuals(lambda x: [x[0] * x[1] - 2, x[0] - x[1] - 1]).both, [3.0, 3.0], jac=True).x.round(6)
    array([2., 1.])
    """
    return Residuals(f, options)


def rhs(f: Callable[..., Any], **options: Any) -> RightHandSide:
    """Return the right-hand side of a differential equation with its Jacobian, for `scipy.integrate.solve_ivp`.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` of a number and an array of shape ``(n,)``, that returns the derivatives: an array of shape
        ``(n,)``, or a list or tuple of n numbers.
    **options
        Those of `pyop.compile`, such as ``fallback=True``.

    Returns
    -------
    RightHandSide
        Called as `f`, it returns the derivatives as an array; ``jac(t, y, *args)`` is the Jacobian by ``y``, of shape
        ``(n, n)``, for the implicit methods.

    Raises
    ------
    TypeError, NoRule
        As for `objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.integrate import solve_ivp
    >>> from pyop.interop.scipy import rhs
    >>> fun = rhs(lambda t, y, mu: [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
    >>> fun.jac(0.0, np.array([2.0, 0.5]), 10.0)
    array([[  0.,   1.],
           [-21., -30.]])
    >>> solve_ivp(fun, (0, 5), [2.0, 0.0], method="BDF", jac=fun.jac, args=(10.0,)).success
    True
    """
    return RightHandSide(f, options)
