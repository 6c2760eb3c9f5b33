"""Provide an adapter to another framework with an op's declaration, its call, its derivatives and its batches.

`Hooks` hands out flat arrays and flat specs, since frameworks have containers of their own (`in_tree`, `out_tree` have
the op's). Its calls check as a call of the op does. An adapter for one more framework needs nothing else of pyop: see
`pyop.interop.torch`.

Hooks may be used by any number of threads. They read the op's rules when they are asked, so a rule that is declared
later is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from .._core import Op
from .._tree import flatten
from ..declare.spec import Spec
from ..gradients import saved
from ..ops.op import op as declare
from ..ops.op import remade
from .declaration import Declaration, Declared
from .derived import OnBatch, PullBack, PushForward

__all__ = ["Declared", "Hooks", "Residuals"]

_REAL = frozenset("fc")
# By the number that the array shows: frameworks hand arrays on by value. Whoever holds the residuals keeps them alive.
_contexts: WeakValueDictionary[int, saved.Context] = WeakValueDictionary()


class Residuals(NamedTuple):
    """Hold what `Hooks.forward` keeps for `Hooks.backward`.

    Attributes
    ----------
    arrays, results : tuple of ndarray
        Of the call, flat.
    context : ndarray or None
        Stands for what the function kept with `pyop.saved`: an int64 of shape ``[1]``; see `Hooks.context`.
    statics : dict
        The static arguments of the call.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.hooks import Hooks
    >>> double = pyop.op(lambda x: 2 * x, "float64[n] -> float64[n]", name="double")
    >>> _ = double.vjp(lambda ct, x: 2 * ct)
    >>> results, kept = Hooks(double).forward(np.ones(2))
    >>> kept.arrays, kept.context, kept.statics
    ((array([1., 1.]),), None, {})
    """

    arrays: tuple[Any, ...]
    results: tuple[Any, ...]
    context: Any
    statics: dict[str, Any]


class Hooks(Declaration):
    """Present an op to an adapter.

    Parameters
    ----------
    op : Op
        With a fixed number of arguments.

    Attributes
    ----------
    op : Op
    name : str
    inputs : tuple of Declared
    outputs : tuple of Declared or None
        Nothing is known of those that a function computes the specs of (``@op.abstract``): see `infer`. None where that
        function answers for the arguments of a call only.
    in_tree : TreeDef
        Of the tuple of arguments.
    out_tree : TreeDef or None
        Of what is returned; None where `outputs` is.
    statics : dict
        Static parameters and their defaults, ``inspect.Parameter.empty`` for none.
    stateful : bool
    gufunc : bool
        Leading dimensions of the arguments loop.

    Raises
    ------
    TypeError
        `op` is no op, or takes any number of arrays.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.hooks import Hooks
    >>> @pyop.op("float64[n], float64[n] -> float64[]")
    ... def dot(x, y):
    ...     return np.dot(x, y)
    >>> @dot.vjp
    ... def _(ct, x, y):
    ...     return ct * y, ct * x
    >>> hooks = Hooks(dot)
    >>> [each.name for each in hooks.inputs], hooks.outputs[0].spec
    (['x', 'y'], Spec('float64[]'))
    >>> results, kept = hooks.forward(np.ones(2), np.arange(2.0))
    >>> hooks.backward(kept, [np.array(2.0)], needs=(True, False))
    (array([0., 2.]), None)
    """

    def __init__(self, op: Op) -> None:
        super().__init__(op)
        self._ops: dict[Any, Op] = {}

    def __reduce__(self) -> Any:
        return Hooks, (self.op,)

    def __repr__(self) -> str:
        return f"<Hooks of op {self.name!r}: {self.op.spec}>"

    # --- what it does

    def call(self, arrays: Sequence[Any], statics: dict[str, Any]) -> tuple[Any, ...]:
        """Return the results of a call, flat.

        Parameters
        ----------
        arrays : sequence of ndarray
            One for each of `inputs`.
        statics : dict

        Returns
        -------
        tuple of ndarray

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> Hooks(pyop.op(lambda x, *, k: x * k, "int64[n] -> int64[n]")).call([np.arange(3)], {"k": 2})
        (array([0, 2, 4]),)
        """
        result = self.op(*(arrays if self.is_flat else self.in_tree.unflatten(arrays)), **statics)
        if type(result) is np.ndarray and self._abstract is None:
            return (result,)
        leaves, form = flatten(result)
        if form != self.out_tree and self.out_tree is not None and self._abstract is not None:
            raise TypeError(
                f"op {self.name!r} returned {len(leaves)} arrays in another container than its abstract rule has "
                f"told of for other arguments: an adapter needs one for all"
            )
        return tuple(leaves)

    def forward(self, *arrays: Any, **statics: Any) -> tuple[tuple[Any, ...], Residuals]:
        """Return the results of a call, and what its gradient needs.

        Parameters
        ----------
        *arrays : ndarray
            One for each of `inputs`. They are kept as they are: whoever writes into them changes the gradient.
        **statics : object

        Returns
        -------
        results : tuple of ndarray
        residuals : Residuals

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> results, kept = Hooks(pyop.op(np.exp, "float64[n] -> float64[n]")).forward(np.zeros(2))
        >>> results, kept.context
        ((array([1., 1.]),), None)
        """
        if not self.saves:
            results = self.call(arrays, statics)
            return results, Residuals(arrays, results, None, statics)
        gradient = self.gradient
        results, kept = saved.collect(gradient.fn, self.name, (arrays, statics), {}, self.call)
        context = saved.Context(kept)
        array = context.array()
        _contexts[int(array[0])] = context
        return results, Residuals(arrays, results, array, statics)

    def context(self, number: Any, arrays: Sequence[Any], statics: dict[str, Any]) -> Any:
        """Return the context of a call by the number that it shows, for frameworks that pass arrays by value.

        Parameters
        ----------
        number : int
        arrays : sequence of ndarray
            The arguments of the call: without the context, the function runs once more, unless it is stateful.
        statics : dict

        Returns
        -------
        ndarray

        Raises
        ------
        RuntimeError
            Nobody has kept the context, and the op is stateful.
        """
        context = _contexts.get(int(number))
        if context is not None:
            return context.array()
        if self.stateful:
            raise RuntimeError(
                f"what op {self.name!r} has saved for its gradient is gone, since the framework copied the array that "
                "stands for it, and a stateful op cannot run again: save arrays as further results instead"
            )
        return self.forward(*arrays, **statics)[1].context

    def backward(
        self, residuals: Residuals, cotangents: Sequence[Any], needs: Sequence[bool] | None = None
    ) -> tuple[Any, ...]:
        """Return the gradients of the arguments.

        Parameters
        ----------
        residuals : Residuals
            Of `forward`.
        cotangents : sequence of ndarray or None
            One for each result; None for zero. Of a complex result, as in torch, ``d/d re + 1j * d/d im`` of a real
            number (its conjugate is JAX's).
        needs : sequence of bool, optional
            Which gradients to compute; all by default.

        Returns
        -------
        tuple of ndarray or None
            None where none is needed, of integers, and for zero.

        Raises
        ------
        NoRule
            The op has no rule for reverse mode.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> hooks = Hooks(pyop.op(np.exp, "float64[n] -> float64[n]"))
        >>> hooks.backward(hooks.forward(np.zeros(2))[1], [np.ones(2)])
        (array([1., 1.]),)
        """
        arrays, results, context, statics = residuals
        which = tuple([k for k, x in enumerate(arrays) if (needs is None or needs[k]) and x.dtype.kind in _REAL])
        if not which:
            return (None,) * len(arrays)
        gradient = self.gradient
        if gradient is not None and gradient.of_arrays and not statics and cotangents[0] is not None:
            gradients = gradient.backward(which, 1, len(arrays), statics)(cotangents[0], *arrays)
            gradients = gradients if type(gradients) is tuple else (gradients,)
        else:
            parts, cts = (results, cotangents) if context is None else ((*results, context), (*cotangents, None))
            pull = self.rule().vjp(which, _one(parts), arrays, statics)
            gradients = pull(
                _one(
                    [np.zeros_like(y) if c is None and len(parts) == 1 else c for c, y in zip(cts, parts, strict=True)]
                )
            )
        if len(gradients) == len(arrays):
            return gradients
        given = dict(zip(which, gradients, strict=True))
        return tuple([given.get(k) for k in range(len(arrays))])

    def jvp(
        self, arrays: Sequence[Any], tangents: Sequence[Any], **statics: Any
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the results, and their tangents.

        Parameters
        ----------
        arrays : sequence of ndarray
            One for each of `inputs`.
        tangents : sequence of ndarray or None
            One for each of them; None for zero.
        **statics : object

        Returns
        -------
        results, tangents : tuple of ndarray

        Raises
        ------
        NoRule
            The op has no rule for forward mode.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> hooks = Hooks(pyop.op(np.exp, "float64[n] -> float64[n]"))
        >>> hooks.jvp([np.zeros(2)], [np.array([1.0, 2.0])])
        ((array([1., 1.]),), (array([1., 2.]),))
        """
        results, kept = self.forward(*arrays, **statics)
        which = tuple([k for k, t in enumerate(tangents) if t is not None])
        if not which:
            return results, tuple([np.zeros_like(y) for y in results])
        parts = results if kept.context is None else (*results, kept.context)
        output_tangents = self.rule().jvp(which, [tangents[k] for k in which], _one(parts), tuple(arrays), statics)
        flat = list(output_tangents) if isinstance(output_tangents, (tuple, list)) else [output_tangents]
        return results, tuple(
            [np.zeros_like(y) if t is None else np.asarray(t) for t, y in zip(flat, results, strict=False)]
        )

    # --- the same as ops

    def vjp_op(self, needs: Sequence[bool] | None = None, n_out: int | None = None) -> Op:
        """Return the gradient as an op, for frameworks that differentiate again, compile, or show what they run.

        Parameters
        ----------
        needs : sequence of bool, optional
            Which gradients it returns; by default all that are not of declared integers.
        n_out : int, optional
            The number of results, where the declaration does not say it.

        Returns
        -------
        Op
            Of the cotangents, the arguments, the results (if `reads_results`) and the context (if `saves`), all flat. A
            single gradient is returned as it is, several in a tuple. The same object at every time; it has a rule where
            the rule of `op` has one.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> square = pyop.op(lambda x: x * x, "float64[n] -> float64[n]")
        >>> @square.vjp
        ... def _(ct, x):
        ...     return 2 * ct * x
        >>> pullback = Hooks(square).vjp_op()
        >>> pullback(np.ones(2), np.array([1.0, 3.0]))
        array([2., 6.])
        >>> Hooks(pullback).backward(Hooks(pullback).forward(np.ones(2), np.array([1.0, 3.0]))[1], [np.ones(2)])
        (array([2., 6.]), array([2., 2.]))
        """
        wanted = [True] * len(self.inputs) if needs is None else list(needs)
        which = tuple([k for k, each in enumerate(self.inputs) if wanted[k] and _may_vary(each.spec)])
        if not which:
            raise TypeError(f"no gradient of op {self.name!r} is asked for, or its inputs are integers")
        count = self._n_out(n_out)
        return self._made(
            ("vjp", which, count, self.gradient, self.reads_results, self.saves),
            lambda: declare(
                PullBack(self, which, count), like=tuple(f"x{k}" for k in which) if len(which) > 1 else f"x{which[0]}"
            ),
        )

    def jvp_op(self, argnums: Sequence[int], n_out: int | None = None) -> Op:
        """Return an op that computes the tangents of the results.

        Parameters
        ----------
        argnums : sequence of int
            The arguments that have tangents.
        n_out : int, optional
            The number of results, where the declaration does not say it.

        Returns
        -------
        Op
            Of these tangents, the arguments and the results, all flat.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> push = Hooks(pyop.op(np.multiply, "float64[n], float64[n] -> float64[n]")).jvp_op([1])
        >>> push(np.ones(1), np.array([2.0]), np.array([5.0]), np.array([10.0]))
        array([2.])
        """
        which, count = tuple(argnums), self._n_out(n_out)
        like = tuple(f"y{k}" for k in range(count)) if count > 1 else "y0"
        return self._made(
            ("jvp", which, count, self.gradient), lambda: declare(PushForward(self, which, count), like=like)
        )

    def batch_op(self, axes: Sequence[bool]) -> Op:
        """Return the op on a batch of examples, called for one after the other.

        Parameters
        ----------
        axes : sequence of bool
            Which arguments are batches: these have the examples along their first axis.

        Returns
        -------
        Op
            Of flat arrays. All its results are batches. A gufunc declaration loops by itself, faster: see `gufunc`.

        Examples
        --------
        >>> import pyop
        >>> from pyop.interop.hooks import Hooks
        >>> dot = pyop.op(np.dot, "float64[n], float64[n] -> float64[]")
        >>> Hooks(dot).batch_op((True, False))(np.eye(3), np.arange(3.0))
        array([0., 1., 2.])
        """
        which = tuple(map(bool, axes))
        if len(which) != len(self.inputs) or not any(which):
            raise ValueError(f"axes= says of each of {len(self.inputs)} arrays whether it is a batch, got {axes!r:.80}")
        return self._made(("batch", which, self.gradient), lambda: self._batched(which))

    def _batched(self, axes: tuple[bool, ...]) -> Op:
        function = OnBatch(self, axes)
        made = declare(function, stateful=self.stateful)

        def specs(*each: Spec, **statics: Any) -> Any:
            size = function.size([spec.shape if spec.shape is not None else (None,) for spec in each])
            kinds = [
                (spec.dtype, spec.shape[1:] if batched and spec.shape is not None else spec.shape)
                for spec, batched in zip(each, axes, strict=True)
            ]
            inferred = self.infer(kinds, statics)
            return _one([Spec(dtype, None if shape is None else (size, *shape)) for dtype, shape in inferred])

        made.abstract(specs)
        return made

    def _n_out(self, n_out: int | None) -> int:
        if self.outputs is not None:
            return len(self.outputs)
        if n_out is None:
            raise TypeError(f"op {self.name!r} does not declare how many results it has: pass n_out=")
        return n_out

    def _made(self, key: Any, make: Callable[[], Op]) -> Op:
        op = self._ops.get(key)
        if op is None:
            made = make()
            # In errors it is found where the op itself was made.
            made = remade(made.__wrapped__, made.contract, made.spec, made.name, made.stateful, {}, self.op.origin)
            op = self._ops.setdefault(key, made)
        return op


def _one(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _may_vary(spec: Spec) -> bool:
    return not isinstance(spec.dtype, np.dtype) or spec.dtype.kind in _REAL
