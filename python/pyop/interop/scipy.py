"""Provide functions with their exact derivatives in the forms in which SciPy's solvers call them.

SciPy estimates a gradient, a Jacobian or a Hessian that it is not given by differences: a call for each variable, and
half of the digits. Here each is derived from the function and compiled, together with the function where SciPy asks for
both, so that common terms are computed once.

>>> import numpy as np
>>> from scipy.optimize import minimize
>>> from pyop.interop.scipy import objective
>>> def rosenbrock(x):
...     return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
>>> found = minimize(objective(rosenbrock), np.zeros(3), jac=True)
>>> found.x.round(4)
array([1., 1., 1.])

The solvers' own arguments go on as they are: ``args=`` of `minimize`, `root`, `solve_ivp` and ``kwargs=`` of
`least_squares` reach the function behind what it is differentiated by. Nothing here imports SciPy until it is needed.

`solve_ivp` integrates, as SciPy's does, without Python in its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from ..compiling import front
from ..gradients.table import NoRule
from ..graph.graph import twinned
from ..transforms.transforms import grad, hessian, hvp, jacobian, value_and_grad
from .ode import solve_ivp
from .ode_plans import KeepsPlans

__all__ = ["Objective", "Residuals", "RightHandSide", "objective", "residuals", "rhs", "solve_ivp"]

_Function = Callable[..., Any]


class _Differentiated:
    """Hold a function and its derivatives, each compiled when it is first called."""

    _place: ClassVar[int] = 0  # of the argument that it is differentiated by

    def __init__(self, f: _Function, options: dict[str, Any]) -> None:
        if not callable(f):
            raise TypeError(f"{type(self).__name__} is made of a function, got {type(f).__name__}")
        self._f = f
        self._options = options
        self._compiled: dict[Any, _Function] = {}
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__doc__ = f.__doc__

        @wraps(f, updated=())
        def returning(*args: Any, **kwargs: Any) -> Any:
            return self._result(twinned(f)(*args, **kwargs), self.__name__)

        self._returning = returning

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._f, self._options)  # compiled anew where it arrives

    def __repr__(self) -> str:
        return f"<pyop.interop.scipy.{type(self).__name__} of {self.__name__!r}>"

    @staticmethod
    def _result(values: Any, name: str) -> Any:
        """Return the function's result in the form that SciPy takes."""
        raise NotImplementedError

    def _call(self, key: Any, derive: Callable[[_Function], _Function], args: tuple[Any, ...], kwargs: Any) -> Any:
        if key not in self._compiled:
            self._compiled[key] = front.compile(derive(self._returning), **self._options)
        return self._compiled[key](*args, **kwargs)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments as SciPy would pass them.

        Variables are an array, keywords are in their places, and an array is one to `pyop.compile`.
        """
        if kwargs:
            bound = signature(self._f).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        x = args[self._place]
        if type(x) is not np.ndarray or x.ndim != 1 or x.dtype.kind not in "fc":
            x = np.atleast_1d(x)
            x = x.astype(np.float64) if x.dtype.kind in "biu" else x
            if x.ndim != 1 or x.dtype.kind not in "fc":
                raise TypeError(
                    f"the variables of {self.__name__} are numbers of shape (n,), got {x.dtype}{[*x.shape]}"
                )
            args = (*args[: self._place], x, *args[self._place + 1 :])
        return args, kwargs


class Objective(_Differentiated):
    """Compute an objective and its derivatives; `objective` makes it. Its methods take what the function takes.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.interop.scipy import objective
    >>> fun = objective(lambda x: np.sum(x ** 3))
    >>> fun([1.0, 2.0])
    (9.0, array([ 3., 12.]))
    >>> fun.hessp([1.0, 2.0], [1.0, 1.0])
    array([ 6., 12.])
    """

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> tuple[float, Any]:
        """Return value and gradient, of one forward pass: for ``jac=True``."""
        value, gradient = self._call("both", value_and_grad, *self._arguments((x, *args), kwargs))
        return float(value), gradient

    def value(self, x: Any, *args: Any, **kwargs: Any) -> float:
        """Return what the function returns, without a gradient."""
        return float(self._call("value", lambda f: f, *self._arguments((x, *args), kwargs)))

    def gradient(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the gradient, of shape ``(n,)``: for ``jac=``."""
        return self._call("gradient", grad, *self._arguments((x, *args), kwargs))

    def hessian(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian, of shape ``(n, n)``: for ``hess=``."""
        return self._call("hessian", hessian, *self._arguments((x, *args), kwargs))

    def hessp(self, x: Any, p: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian times a vector, of shape ``(n,)``, without the Hessian: for ``hessp=``."""

        def product(f: _Function) -> _Function:
            return lambda p, x, *rest, **options: hvp(lambda y: f(y, *rest, **options), (x,), (p,))

        args, kwargs = self._arguments((x, *args), kwargs)
        return self._call("hessp", product, (np.asarray(p, args[0].dtype), *args), kwargs)

    @staticmethod
    def _result(values: Any, name: str) -> Any:
        value = _array(values, name)
        if value.dtype.kind not in "biuf" or value.size != 1:
            raise TypeError(f"{name} returned {value.dtype}{[*value.shape]}: SciPy minimises one real number")
        return value.reshape(())


class Residuals(_Differentiated):
    """Compute residuals and their Jacobian; `residuals` makes it. Its methods take what the function takes.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.interop.scipy import residuals
    >>> fun = residuals(lambda p, t: p[0] * t)
    >>> fun([2.0], np.arange(3.0))
    array([0., 2., 4.])
    >>> fun.jac([2.0], np.arange(3.0)).shape
    (3, 1)
    """

    _fewer_variables: bool | None = None  # than values; known from the first call on

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, as an array of shape ``(m,)``."""
        return self._call("values", lambda f: f, *self._arguments((x, *args), kwargs))

    def jac(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, of shape ``(m, n)``: for ``jac=``."""
        return self._by_size("jac", lambda f, derivatives: derivatives, *self._arguments((x, *args), kwargs))

    def both(self, x: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return values and Jacobian, of one forward pass: for ``jac=True`` of `root`."""

        def pair(f: _Function, derivatives: _Function) -> _Function:
            return wraps(f)(lambda *args, **kwargs: (f(*args, **kwargs), derivatives(*args, **kwargs)))  # merged

        values, derivatives = self._by_size("both", pair, *self._arguments((x, *args), kwargs))
        return values, derivatives

    def _by_size(
        self, key: str, derive: Callable[[_Function, _Function], _Function], args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        # A pass for each variable or for each value, whichever are fewer; rules may be missing for one of both.
        if self._fewer_variables is None:
            self._fewer_variables = args[self._place].size <= self._call("values", lambda f: f, args, kwargs).size

        def by(mode: Any) -> Any:
            return self._call((key, mode), lambda f: derive(f, jacobian(f, self._place, mode=mode)), args, kwargs)

        try:
            return by("forward" if self._fewer_variables else "reverse")
        except NoRule:
            self._fewer_variables = not self._fewer_variables
            return by("forward" if self._fewer_variables else "reverse")

    @staticmethod
    def _result(values: Any, name: str) -> Any:
        array = _array(values, name)
        if array.ndim != 1:
            raise TypeError(f"{name} returned {array.dtype}{[*array.shape]}: SciPy takes numbers of shape (m,)")
        return array


class RightHandSide(Residuals, KeepsPlans):
    """Compute a right-hand side; `rhs` makes it: as `Residuals`, of ``f(t, y, *args)``, differentiated by ``y``.

    Examples
    --------
    >>> from pyop.interop.scipy import rhs
    >>> fun = rhs(lambda t, y: [2 * y[0], y[0] + y[1]])
    >>> fun.jac(0.0, [1.0, 0.0])
    array([[2., 0.],
           [1., 1.]])
    """

    _place = 1
    _fewer_variables = True  # as many of one as of the other

    def __init__(self, f: _Function, options: dict[str, Any]) -> None:
        super().__init__(f, options)
        self._plans = {}


def _array(values: Any, name: str) -> Any:
    """Return the function's result as an array of one axis or more; TypeError if it is none."""
    if isinstance(values, list | tuple) and values and all(np.shape(x) == () for x in values):
        values = np.stack(values)
    array = np.atleast_1d(values) if hasattr(values, "shape") or np.isscalar(values) else None
    if array is None or array.dtype.kind not in "biufc":
        raise TypeError(f"{name} returned a {type(values).__name__}: SciPy takes numbers, an array or a list of them")
    return array


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
