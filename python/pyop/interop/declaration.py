"""Read the declaration of an op for adapters: its arrays, statics and rules, and the specs of its results.

It is the base of `Hooks`; `hooks.py` describes its use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import Op
from .._tree import TreeDef, flatten
from ..declare.dim import Dim
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..gradients import table
from ..gradients.table import Rule
from .sizes import Names, broadcast_sizes, declared_equal, split_loops

__all__ = ["Declaration", "Declared"]


class Declared(NamedTuple):
    """Describe one array that an op takes or returns.

    Attributes
    ----------
    name : str
        ``"x"``, or ``"x['mean']"`` for a part of a container.
    spec : Spec
        What is declared of it.
    written : bool
        Whether the function writes into it (``mutates=``).

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.hooks import Hooks
    >>> Hooks(pyop.op(np.sin, "float64[n] -> float64[n]")).inputs[0].spec
    Spec('float64[n]')
    """

    name: str
    spec: Spec
    written: bool = False


class Declaration:
    """Hold what an op declares; see `Hooks`."""

    def __init__(self, op: Op) -> None:
        if not isinstance(op, Op):
            raise TypeError(f"expected an op, which pyop.op makes of a function, got {type(op).__name__} {op!r:.80}")
        signature: Signature = op.spec
        if signature.inputs is not None:
            arguments: tuple[Any, ...] = signature.inputs
        elif op.contract is not None and len(op.parameters) > 0:
            arguments = tuple(Spec() for _ in op.parameters)
        else:
            raise TypeError(
                f"op {op.name!r} takes any number of arrays: declare its inputs, 'float64[n], float64[n] -> float64[]'"
            )
        self.op = op
        self.name: str = op.name
        self.stateful = bool(op.stateful)
        self.gufunc = bool(signature.gufunc)
        leaves, self.in_tree = flatten(arguments)
        mutates = op.contract.mutates
        names = [_name(path, op.parameters) for path in self.in_tree.leaf_paths()]
        self.inputs = tuple(
            Declared(name, spec, bool(mutates >> k & 1))
            for k, (name, spec) in enumerate(zip(names, leaves, strict=True))
        )
        self.statics: dict[str, Any] = _statics(op)
        self.outputs: tuple[Declared, ...] | None = None
        self.out_tree: TreeDef | None = None
        self._abstract = vars(op).get("_abstract_rule")
        declared: Any = Spec() if signature.outputs is None else signature.outputs
        if self._abstract is not None:
            declared = self._form_of_results()
        if declared is not None:
            specs, self.out_tree = flatten(declared)
            paths = [path or "result" for path in self.out_tree.leaf_paths()]
            self.outputs = tuple(Declared(path, spec) for path, spec in zip(paths, specs, strict=True))
        self.is_flat = all(isinstance(each, Spec) for each in arguments)

    def _given(self, statics: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in self.statics.items() if value is not inspect.Parameter.empty}
        return known | statics

    def _form_of_results(self) -> Any:
        """Return the containers that a function of specs returns, with nothing known in them.

        It is asked about arrays of some number of dimensions. None if it has no answer to any.
        """
        assert self._abstract is not None
        for rank in (1, 2, 3, 4, 0):
            sizes = [Dim(f"size_{k}") for k in range(rank)]
            specs = [
                Spec(
                    each.spec.dtype if isinstance(each.spec.dtype, np.dtype) else np.float64,
                    each.spec.shape if each.spec.ndim is not None else sizes,
                )
                for each in self.inputs
            ]
            try:
                tree = self._abstract.structure(specs, self._given({}))
            except Exception:  # the user's function, about arrays that nobody has: it may do anything
                continue
            return tree.unflatten([Spec()] * tree.num_leaves)
        return None

    @property
    def gradient(self) -> Any:
        """Return the gradient rules that the op was given, or None."""
        return self.op.contract.gradient

    @property
    def saves(self) -> bool:
        """Return whether the gradient rule reads what the function kept with `pyop.saved`."""
        return self.gradient is not None and bool(self.gradient.saves)

    @property
    def reads_results(self) -> bool:
        """Return whether the gradient rule reads the results."""
        gradient = self.gradient
        if gradient is None:
            return True
        return gradient.vjp_fn is not None and "out" in gradient.vjp_wants

    @property
    def differentiable(self) -> bool:
        """Return whether there is a rule for reverse mode."""
        gradient = self.gradient
        if gradient is not None:
            return gradient.vjp_fn is not None or bool(gradient.jacs) or gradient.fallback is not None
        rule = table.lookup(self.op.__wrapped__)
        return rule is not None and rule.differentiable

    @property
    def has_jvp(self) -> bool:
        """Return whether there is a rule for forward mode."""
        gradient = self.gradient
        if gradient is not None:
            return gradient.jvp_fn is not None or bool(gradient.jacs) or gradient.fallback is not None
        return self.differentiable

    def rule(self) -> Rule:
        """Return the gradient rule; a `NoRule` with a remedy if there is none."""
        gradient = self.gradient
        if gradient is not None:
            own: Rule = gradient.rule
            return own
        rule = table.lookup(self.op.__wrapped__)
        if rule is None:
            table.missing_of_op(self.name, self.op.contract)
        return rule

    def infer(
        self,
        kinds: Sequence[tuple[Any, Any]],
        statics: dict[str, Any] | None = None,
        *,
        key: Callable[[Any], Any] = lambda size: size,
        equal: Callable[[Any, Any], Any] | None = None,
        broadcast: Callable[..., Any] = broadcast_sizes,
    ) -> list[tuple[Any, Any]]:
        """Return dtypes and shapes of the results, from those of the arguments, without a call.

        Parameters
        ----------
        kinds : sequence of (dtype, shape)
            One for each of `inputs`. Sizes are ints, or a framework's own: anything that adds, multiplies and divides.
        statics : dict, optional
        key : callable, optional
            What tells two symbolic sizes apart: hashable, an int for a size that is one. The size itself by default.
        equal : callable, optional
            Told of every two sizes that must be equal by the declaration.
        broadcast : callable, optional
            ``broadcast(*shapes)``, of the leading dimensions of a gufunc declaration.

        Returns
        -------
        list of (dtype, shape)
            None for a dtype, a shape or a size that is known only after the call.

        Raises
        ------
        ValueError
            An argument provably is not what is declared.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> double = pyop.op(lambda x: np.concatenate([x, x]), "T[n] -> T[2*n]")
        >>> size = pyop.Dim("batch") + 1
        >>> Hooks(double).infer([(np.dtype("float32"), (size,))])
        [(dtype('float32'), (Dim('2*batch+2'),))]
        """
        op, names = self.op, Names(key)
        shapes = [shape for _, shape in kinds]
        declared = [each.spec for each in self.inputs]
        if len(kinds) != len(declared):
            raise ValueError(f"op {self.name!r} takes {len(declared)} arrays, got {len(kinds)}")
        if equal is not None and not self.gufunc:
            declared_equal(declared, shapes, key, equal)
        split = split_loops(declared, shapes) if self.gufunc else None
        front: tuple[Any, ...] = ()
        if split is not None:
            front, shapes = tuple(broadcast(*split[0])), split[1]
        dtypes = [dtype if dtype is None else op.spec.cast_to(k, dtype) or dtype for k, (dtype, _) in enumerate(kinds)]
        specs = [Spec(dtype, names.of(shape)) for dtype, shape in zip(dtypes, shapes, strict=True)]
        if self._abstract is not None:
            inferred = self._abstract.infer(specs, self._given(statics or {}))[0]
        else:
            inferred = op.spec.infer(specs)
        return [
            (spec.dtype if isinstance(spec.dtype, np.dtype) else None, _joined(front, names.back(spec.shape)))
            for spec in inferred
        ]


def _joined(front: tuple[Any, ...], shape: Any) -> Any:
    return None if shape is None else (*front, *shape)


def _name(path: str, parameters: Sequence[str]) -> str:
    """Return the name of a leaf of the arguments: its parameter, and the path inside it."""
    position, _, rest = path[1:].partition("]")
    k = int(position)
    return f"{parameters[k] if k < len(parameters) else f'x{k}'}{rest}"


def _statics(op: Op) -> dict[str, Any]:
    if isinstance(op.__wrapped__, np.ufunc):
        return {}  # where=, casting= and their kin are NumPy's, which no framework has types for
    try:
        parameters = inspect.signature(op.__wrapped__).parameters
    except (TypeError, ValueError):
        return {}
    empty = inspect.Parameter.empty
    return {name: parameters[name].default if name in parameters else empty for name in op.statics}
