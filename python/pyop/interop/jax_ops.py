"""Turn ops into functions of JAX: a callback, with specs, gradient and batches from the declaration.

There are two parts, since JAX allows no callback with effects in a function with a gradient of its own. One is the
call, whose arguments are cut off from derivatives. The other returns the results unchanged and has the gradient,
through which JAX differentiates.
"""

from __future__ import annotations

import inspect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._core import Op
from .._tree import flatten
from .hooks import Hooks, Residuals
from .jax_arrays import arrays_of, checked, is_traced, real, results_like, run_eagerly
from .jax_native import ordered_call, python_call
from .sizes import broadcast_sizes

__all__ = ["JaxOp"]

_CONTEXTS = 64  # that are kept; without one, the function runs again for its gradient


class JaxOp:
    """Call an op from JAX; `pyop.interop.jax.wrap` makes them.

    Attributes
    ----------
    op : Op

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.jax import wrap
    >>> double = wrap(pyop.op(lambda x: 2 * x, "float32[n] -> float32[n]", name="double"))
    >>> double, double(np.ones(2, "float32")).tolist()
    (<JaxOp double: float32[n] -> float32[n]>, [2.0, 2.0])
    """

    def __init__(self, op: Op, derivatives: str | None = None) -> None:
        self.op = op
        self.__wrapped__ = op
        self.__name__ = op.name
        self._hooks = Hooks(op)
        self._derivatives = derivatives
        self._made: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<JaxOp {self.op.name}: {self.op.spec}>"

    def __reduce__(self) -> Any:
        return JaxOp, (self.op, self._derivatives)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it with JAX's arrays where the op takes arrays."""
        hooks = self._hooks
        arrays, statics = self._sorted(arguments, named)
        key = (
            tuple([(k, type(v), v) for k, v in statics.items()]),
            *[(x.shape, x.dtype) for x in arrays],
            (jax.config.jax_enable_x64, hooks.gradient),
        )
        made = self._made.get(key)
        if made is None:
            checked(repr(self), [each.name for each in hooks.inputs], arrays)
            made = self._made.setdefault(key, _Call(self, statics, arrays, self._derivatives).function)
        results = made(*arrays) if is_traced(arrays) else run_eagerly(made, arrays)
        tree = hooks.out_tree
        return results[0] if tree is None else tree.unflatten(results)

    def _sorted(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        hooks, parameters = self._hooks, self.op.parameters
        statics = {name: value for name, value in named.items() if name in hooks.statics}
        positional = list(arguments)
        positional += [named[name] for name in parameters[len(positional) :] if name in named]
        if len(positional) + len(statics) != len(arguments) + len(named):
            raise TypeError(f"{self!r} takes {', '.join([*parameters, *hooks.statics])}; got {sorted(named)} by name")
        for name, default in hooks.statics.items():
            if name not in statics and default is inspect.Parameter.empty:
                raise TypeError(f"{self!r} needs its static argument '{name}'")
        for name, value in statics.items():
            if isinstance(value, jax.Array):
                raise TypeError(f"{self!r}: static argument '{name}' is an array of JAX: pass a Python value")
        leaves, tree = flatten(tuple(positional))
        if tree != hooks.in_tree:
            raise TypeError(f"{self!r} takes arrays as in {hooks.in_tree}, got {tree}")
        return [x if isinstance(x, (jax.Array, np.ndarray)) else _as_array(x) for x in leaves], statics


def _as_array(x: Any) -> Any:
    made = np.asarray(x)
    return jax.numpy.asarray(x) if made.dtype.kind in "if" and isinstance(x, (int, float)) else made


class _Call:
    """Call one op for arguments of one kind."""

    def __init__(self, of: JaxOp, statics: dict[str, Any], arrays: Sequence[Any], derivatives: str | None) -> None:
        self.of = of  # kept with the call, so that `wrap` finds it again
        self.hooks = hooks = of._hooks
        self.statics = statics
        self._pulls: dict[Any, Callable[..., Any]] = {}  # of `_pulled`: JAX keeps each for ever
        self.owner = f"op {hooks.name!r}"
        self.ranks = [x.ndim for x in arrays]
        # A gufunc's own loops, where it has no other ones here, are those of `vmap`.
        self.loops = hooks.gufunc and all(
            x.ndim == each.spec.ndim for x, each in zip(arrays, hooks.inputs, strict=True)
        )
        kinds = hooks.infer([(np.dtype(x.dtype), tuple(x.shape)) for x in arrays], statics)
        self.n_out = len(kinds)
        written = [each.name for each in hooks.inputs if each.written]
        if written and not kinds and not hooks.stateful:
            raise TypeError(
                f"{self.owner} writes into {written[0]!r} and returns nothing, and JAX's arrays never change: return "
                f"{written[0]!r}, too"
            )
        self.results = results_like(self.owner, kinds)
        self.moving = [k for k, x in enumerate(arrays) if real(x.dtype)]
        mode = derivatives
        if mode is None:
            mode = "vjp" if hooks.differentiable or not hooks.has_jvp else "jvp"
        self.saves = hooks.saves and mode == "vjp"
        if self.saves:
            self.results.append(jax.ShapeDtypeStruct((), np.int32))
        gradient = None
        if self.moving:
            gradient = self._reverse() if mode == "vjp" else self._forward()
        bound = (
            ordered_call(self._run, self.results)
            if hooks.stateful
            else python_call(self._run, [x.dtype for x in arrays], self.results, "expand_dims")
        )

        def call(*given: Any) -> Any:
            if gradient is None:
                return bound(*given)[: self.n_out]
            results = bound(*map(jax.lax.stop_gradient, given))
            return list(gradient(tuple(given), tuple(results)))[: self.n_out]

        self.function = jax.jit(call)

    def _run(self, arrays: Sequence[Any]) -> Any:
        if self.loops and arrays[0].ndim > self.ranks[0]:
            return self._once(list(arrays))
        return _batched(self.owner, self._once, list(arrays), self.ranks, self.results)

    def _once(self, arrays: list[Any]) -> Sequence[Any]:
        if not self.saves:
            return self.hooks.call(arrays, self.statics)
        results, kept = self.hooks.forward(*arrays, **self.statics)
        return (*results, _remember(kept.context))

    def _reverse(self) -> Callable[..., Any]:
        hooks, statics = self.hooks, self.statics
        attach: Any = jax.custom_vjp(lambda given, found: found)
        results = self.results[: self.n_out]
        moved = [j for j, y in enumerate(results) if real(y.dtype)]

        def backward(given: Any, found: Any, cotangents: Any) -> Any:
            if not hooks.differentiable:
                hooks.rule()  # says which rule there is none of
            if not hooks.saves and len(moved) == self.n_out:
                needs = [k in self.moving for k in range(len(given))]
                own = getattr(self, "_pull", None)
                if own is None:
                    own = self._pull = JaxOp(hooks.vjp_op(needs, self.n_out))
                parts = [*map(_conj, cotangents), *given, *(found[: self.n_out] if hooks.reads_results else ())]
                gradients = own(*parts, **statics)
                return [_conj(g) for g in (gradients if isinstance(gradients, tuple) else (gradients,))]
            return self._pulled(given, found, cotangents, moved)

        def forward(given: Any, found: Any) -> Any:
            found = attach(given, found)  # for the derivative of the gradient, which reads results
            return found, (given, found)

        def reverse(kept: Any, cotangents: Any) -> Any:
            given, results = kept
            gradients: list[Any] = [None] * len(given)
            for k, g in zip(self.moving, backward(given, results, cotangents[: self.n_out]), strict=True):
                gradients[k] = g
            return tuple(gradients), tuple([None] * len(results))

        attach.defvjp(forward, reverse)
        made: Callable[..., Any] = attach
        return made

    def _pulled(self, given: Any, found: Any, cotangents: Any, moved: list[int]) -> Any:
        """Return the gradient by a callback of its own, for an op without an op of its pullback."""
        n = len(given)
        wanted = [jax.ShapeDtypeStruct(given[k].shape, given[k].dtype) for k in self.moving]
        parts = [*given, *found[: self.n_out], *[_conj(cotangents[j]) for j in moved]]
        if self.saves:
            parts.append(found[-1])
        kinds = tuple([(x.shape, x.dtype) for x in parts])
        pull = self._pulls.get(kinds)
        if pull is None:
            pull = self._pulls.setdefault(kinds, self._pull_of(parts, n, wanted, moved))
        return [_conj(g) for g in pull(*parts)]

    def _pull_of(self, parts: Sequence[Any], n: int, wanted: Sequence[Any], moved: list[int]) -> Callable[..., Any]:
        hooks = self.hooks
        ranks = [x.ndim for x in parts]

        def once(arrays: list[Any]) -> Sequence[Any]:
            inputs, outputs = tuple(arrays[:n]), tuple(arrays[n : n + self.n_out])
            each: list[Any] = [None] * self.n_out
            for j, ct in zip(moved, arrays[n + self.n_out :], strict=False):
                each[j] = ct
            context = None
            if self.saves:
                context = _remembered(int(arrays[-1]))
                if context is None:
                    context = hooks.context(-1, inputs, self.statics)
            needs = [k in self.moving for k in range(n)]
            pulled = hooks.backward(Residuals(inputs, outputs, context, self.statics), each, needs)
            return [np.zeros_like(inputs[k]) if pulled[k] is None else pulled[k] for k in self.moving]

        def run(arrays: Sequence[Any]) -> Any:
            return _batched(self.owner, once, list(arrays), ranks, wanted)

        return python_call(run, [x.dtype for x in parts], wanted, "expand_dims")

    def _forward(self) -> Callable[..., Any]:
        hooks, statics = self.hooks, self.statics
        attach: Any = jax.custom_jvp(lambda given, found: found)
        push = JaxOp(hooks.jvp_op(self.moving, self.n_out))

        def rule(primals: Any, tangents: Any) -> Any:
            given, results = primals
            results = attach(given, results)
            moved = push(*[tangents[0][k] for k in self.moving], *given, *results[: self.n_out], **statics)
            moved = moved if isinstance(moved, tuple) else (moved,)
            zeros = [jax.numpy.zeros_like(t) for t in tangents[1]]
            return results, (*moved, *zeros[self.n_out :])

        attach.defjvp(rule)
        made: Callable[..., Any] = attach
        return made


def _conj(x: Any) -> Any:
    """Return the conjugate of a complex array: pyop's gradient of a complex number is the conjugate of JAX's."""
    return jax.numpy.conj(x) if jax.numpy.issubdtype(x.dtype, jax.numpy.complexfloating) else x


def _batched(owner: str, once: Callable[..., Any], arrays: list[Any], ranks: list[int], results: Any) -> list[Any]:
    """Return the results of one call, or under `vmap` of one for each example.

    `vmap` puts its axes in front, of size 1 where there is none.
    """
    lead = arrays[0].ndim - ranks[0] if arrays else 0
    if lead == 0:
        return arrays_of(owner, once(arrays), results)
    front = broadcast_sizes(*[x.shape[: x.ndim - rank] for x, rank in zip(arrays, ranks, strict=True)])
    told = [jax.ShapeDtypeStruct((*front, *y.shape), y.dtype) for y in results]
    made = [np.empty(y.shape, y.dtype) for y in told]
    for place in np.ndindex(*front):
        part = [x[tuple(i if n > 1 else 0 for i, n in zip(place, x.shape, strict=False))] for x in arrays]
        for target, value in zip(made, arrays_of(owner, once(part), results), strict=True):
            target[place] = value
    return made


_lock = threading.Lock()
_contexts: OrderedDict[int, Any] = OrderedDict()
_numbers = itertools.count(1)


def _remember(context: Any) -> Any:
    number = next(_numbers) % (1 << 31)
    with _lock:
        _contexts[number] = context
        while len(_contexts) > _CONTEXTS:
            _contexts.popitem(last=False)
    return np.int32(number)


def _remembered(number: int) -> Any:
    with _lock:
        return _contexts.get(number)
