"""Declare gradients of an op: the decorators `Op.vjp`, `Op.jvp` and `Op.jac`, and ``pyop.op(grad=...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import Op
from ..declare.contracts import new_contract
from ..declare.parameters import Parameters
from ..transforms.op_rule import OpGradient
from .op import op

__all__ = ["jac", "jvp", "vjp"]


def vjp(self: Op, rule: Callable[..., Any]) -> Op:
    """Set the gradient rule of an op for reverse mode.

    Parameters
    ----------
    rule : callable
        Called as ``rule(ct, *args)`` with the cotangent of the result (a tree like the results of the op) and the
        arguments. Returns one cotangent for each argument, a single one for a single argument; None for zero. It may
        have these keyword-only parameters: ``saved``, what the op kept with `pyop.saved`; ``needs``, a bool for each
        argument; ``out``, the result; and static parameters of the op.

    Returns
    -------
    Op
        The rule as an op, which can have a rule itself. Without one, second derivatives are taken of what the rule
        does, if it is written in NumPy functions and reads no residuals.

    Raises
    ------
    TypeError
        The rule takes a keyword that nobody passes.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n], float64[n] -> float64[]")
    ... def dot(x, y):
    ...     return np.dot(x, y)
    >>> @dot.vjp
    ... def _(ct, x, y):
    ...     return ct * y, ct * x
    >>> pyop.grad(dot)(np.zeros(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    gradient = _gradient_of(self)
    gradient.vjp_wants = gradient.wants(rule, "vjp")
    gradient.vjp_fn = rule
    gradient.settle()
    if gradient.saves:
        _make_saving(self, gradient)

    def of_arrays(*arrays: Any) -> Any:
        return rule(*arrays)

    of_arrays.__doc__ = rule.__doc__
    gradient.vjp = op(of_arrays, name=f"{self.name}_vjp")
    # Its own rule, if it gets one, is handed so many cotangents.
    vars(gradient.vjp)["_n_results"] = len(self.parameters if self.spec.inputs is None else self.spec.inputs)
    made: Op = gradient.vjp
    return made


def jvp(self: Op, rule: Callable[..., Any]) -> Op:
    """Set the gradient rule of an op for forward mode.

    Parameters
    ----------
    rule : callable
        Called as ``rule(*tangents, *args)`` with one tangent for each argument, zeros where there is none, and the
        arguments. Returns the tangent of the result, a tree like it. It may have the keyword-only parameter ``out``,
        the result, and static parameters of the op.

    Returns
    -------
    Op
        The rule as an op.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n] -> float64[n]")
    ... def cube(x):
    ...     return x**3
    >>> @cube.jvp
    ... def _(t, x):
    ...     return 3 * x**2 * t
    >>> pyop.jvp(cube, (np.array([2.0]),), (np.array([1.0]),))[1]
    array([12.])
    """
    gradient = _gradient_of(self)
    gradient.jvp_wants = gradient.wants(rule, "jvp")
    gradient.jvp_fn = rule

    def of_arrays(*arrays: Any) -> Any:
        return rule(*arrays)

    of_arrays.__doc__ = rule.__doc__
    return op(of_arrays, name=f"{self.name}_jvp")


def jac(
    self: Op, rule: Callable[..., Any] | None = None, *, of: Any = 0, wrt: int | str = 0, structure: Any = "dense"
) -> Any:
    """Set one of an op's Jacobians, from which both modes are made.

    Parameters
    ----------
    rule : callable
        Takes the arguments of the op. Returns the derivatives of result `of` by argument `wrt`.
    of : int
        Which result, counted flat.
    wrt : int or str
        Which argument: its position or its name.
    structure : "dense", "diagonal" or (rows, columns)
        What the rule returns: an array of the shape of the result followed by that of the argument; one of the
        shape of the result, whose elements depend on the elements of the argument at the same place; or the values at
        these places of the Jacobian of the flattened arrays, which is zero elsewhere.

    Returns
    -------
    callable
        `rule` itself, so that this can be used as a decorator.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n] -> float64[n]")
    ... def cube(x):
    ...     return x**3
    >>> @cube.jac(structure="diagonal")
    ... def _(x):
    ...     return 3 * x**2
    >>> pyop.grad(lambda x: np.sum(cube(x)))(np.array([2.0, 1.0]))
    array([12.,  3.])
    """
    if not (structure in ("dense", "diagonal") if isinstance(structure, str) else len(structure) == 2):
        raise ValueError(f"structure is 'dense', 'diagonal' or (rows, columns), got {structure!r:.80}")
    if not isinstance(structure, str):
        structure = tuple(np.asarray(part, np.intp) for part in structure)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        gradient = _gradient_of(self)
        gradient.wants(function, "jac")
        count = None if gradient.out_specs is None else len(gradient.out_specs)
        if not isinstance(of, int) or (count is not None and not 0 <= of < count):
            raise ValueError(f"of={of!r} is not one of the {count} results of op {self.name!r}")
        gradient.jacs[of, gradient.position(wrt)] = (function, structure)
        return function

    return register if rule is None else register(rule)


def _declare_fallback(self: Op, grad: str) -> None:
    """Set the fallback that ``pyop.op(grad="fd")`` or ``grad="cs"`` asks for."""
    if grad not in ("fd", "cs"):
        raise ValueError(f'grad is "fd" (central differences) or "cs" (complex step), got {grad!r:.80}')
    _gradient_of(self).fallback = grad


def _gradient_of(self: Op) -> Any:
    """Return the `OpGradient` of an op.

    The first call makes it, with a contract of the op's own that holds it.
    """
    if self.contract.gradient is None:
        parameters = Parameters.of(self.__wrapped__)
        abstract = vars(self).get("_abstract_rule")
        contract = new_contract(
            self.spec,
            abstract,
            mutates=self.contract.mutates,
            out_mode=parameters.out_mode,
            gradient=OpGradient(self),
        )
        vars(self).setdefault("_contracts", []).append(self.contract)  # a call in flight may still read it
        self._declare(contract, self.spec)
    return self.contract.gradient


def _make_saving(self: Op, gradient: Any) -> None:
    if gradient.out_specs is None and gradient.abstract is None:
        raise TypeError(
            f"op {self.name!r} must declare its outputs for its gradient rule to take saved=: in its signature, or "
            f"with @{self.name}.abstract before the rule"
        )
    if self.contract.mutates:
        raise TypeError(f"op {self.name!r} writes into its arguments, so its gradient rule cannot take saved=")
    gradient.keep_residuals()


for _method in (vjp, jvp, jac, _declare_fallback):
    setattr(Op, _method.__name__, _method)
