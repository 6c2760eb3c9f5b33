"""Derive functions of flat arrays from an op: its pullback, its push-forward, and itself on a batch of examples.

Each has a rule for the next derivative where the op has one, so the ops that `hooks.py` makes of them differentiate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..gradients import table
from ..gradients.table import NoRule, Pullback, Rule
from ..gradients.unbroadcast import fit_dtype

if TYPE_CHECKING:
    from .hooks import Hooks

__all__ = ["OnBatch", "PullBack", "PushForward"]


def signature_of(names: Sequence[str], statics: dict[str, Any]) -> inspect.Signature:
    """Return a signature of positional parameters of these names, and keyword-only ones with their defaults."""
    kinds = inspect.Parameter
    return inspect.Signature(
        [kinds(name, kinds.POSITIONAL_ONLY) for name in names]
        + [kinds(name, kinds.KEYWORD_ONLY, default=default) for name, default in statics.items()]
    )


def one_or_tuple(parts: Sequence[Any]) -> Any:
    """Return the result as an op with so many results returns it."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """Return the tuple that `one_or_tuple` was given."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


class PullBack:
    """Map ``(*cotangents, *arguments, *results if wanted, context if any)`` to the gradients of some arguments."""

    def __init__(self, hooks: Hooks, argnums: tuple[int, ...], n_out: int) -> None:
        self.hooks = hooks
        self.argnums = argnums
        self.n_out = n_out
        self.n_in = len(hooks.inputs)
        names = [f"ct{k}" for k in range(n_out)] + [f"x{k}" for k in range(self.n_in)]
        names += [f"y{k}" for k in range(n_out)] * hooks.reads_results + ["context"] * hooks.saves
        self.__name__ = f"{hooks.name}_vjp"
        gradient = hooks.gradient
        # The commonest: one result, and a rule that takes nothing but arrays.
        self._of_arrays: Any = None
        if gradient is not None and gradient.of_arrays and n_out == 1:
            self._of_arrays = gradient.backward(argnums, 1, self.n_in, {})
        self.__signature__ = signature_of(names, hooks.statics)

    def __call__(self, *arrays: Any, **statics: Any) -> Any:
        gradient = self.hooks.gradient
        if self._of_arrays is not None and gradient.of_arrays and not statics:
            return self._of_arrays(*arrays)
        if gradient is not None and gradient.vjp_fn is not None:
            which = self._differentiated(arrays)
            gradients = gradient.backward(which, self.n_out, self.n_in, statics)(*arrays)
            if which is self.argnums:
                return gradients
            parts = dict(zip(which, as_tuple(gradients), strict=True))
            return one_or_tuple([parts[k] for k in self.argnums])
        cts, arguments = arrays[: self.n_out], arrays[self.n_out : self.n_out + self.n_in]
        results = arrays[self.n_out + self.n_in :][: self.n_out] if self.hooks.reads_results else cts
        pull = self.hooks.rule().vjp(self.argnums, one_or_tuple(results), arguments, statics)
        gradients = as_tuple(pull(one_or_tuple(cts)))
        zeros = [np.zeros_like(arguments[k]) if p is None else p for k, p in zip(self.argnums, gradients, strict=True)]
        return one_or_tuple([fit_dtype(np.asarray(p), arguments[k]) for k, p in zip(self.argnums, zeros, strict=True)])

    def _differentiated(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """Return all arguments that a user's rule of the rule covers; without one, those that are asked for."""
        vjp = self.hooks.gradient.vjp
        if vjp is None or vjp.contract.gradient is None:
            return self.argnums
        arguments = arrays[self.n_out : self.n_out + self.n_in]
        return tuple(k for k, x in enumerate(arguments) if x.dtype.kind in "fc")

    @property
    def _pyop_gradient_rule(self) -> Rule | None:
        gradient = self.hooks.gradient
        return None if gradient is None or gradient.vjp_fn is None else _OfPullBack(self)


class _OfPullBack(Rule):
    """Differentiate an op's gradient, by the rule of its rule."""

    def __init__(self, function: PullBack) -> None:
        super().__init__(function)
        self.function = function

    def _inner(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[int, ...], Rule]:
        f = self.function
        which = f._differentiated(args)
        call = f.hooks.gradient.backward(which, f.n_out, f.n_in, kwargs)
        rule = table.lookup(call)
        if rule is None:
            raise NoRule(f"the second derivative of op {f.hooks.name!r} has no rule: what its .vjp returns has one too")
        return which, rule

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        f = self.function
        which, rule = self._inner(args, kwargs)
        given = dict(zip(f.argnums, as_tuple(ans), strict=True))
        every = one_or_tuple([given.get(k, args[f.n_out + k]) for k in which])
        pull = rule.vjp(argnums, every, args, {})

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = dict(zip(f.argnums, as_tuple(ct), strict=True))
            full = [np.zeros_like(args[f.n_out + k]) if cts.get(k) is None else cts[k] for k in which]
            return pull(one_or_tuple(full))

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        f = self.function
        which, rule = self._inner(args, kwargs)
        given = dict(zip(f.argnums, as_tuple(ans), strict=True))
        every = one_or_tuple([given.get(k, args[f.n_out + k]) for k in which])
        by_input = dict(zip(which, as_tuple(rule.jvp(argnums, tangents, every, args, {})), strict=True))
        return one_or_tuple([by_input[k] for k in f.argnums])


class PushForward:
    """Map ``(*tangents, *arguments, *results)`` to the tangents of the results."""

    def __init__(self, hooks: Hooks, argnums: tuple[int, ...], n_out: int) -> None:
        self.hooks = hooks
        self.argnums = argnums
        self.n_out = n_out
        self.n_in = len(hooks.inputs)
        names = [f"t{k}" for k in argnums] + [f"x{k}" for k in range(self.n_in)] + [f"y{k}" for k in range(n_out)]
        self.__name__ = f"{hooks.name}_jvp"
        self.__signature__ = signature_of(names, hooks.statics)

    def __call__(self, *arrays: Any, **statics: Any) -> Any:
        at = len(self.argnums)
        tangents, arguments, results = arrays[:at], arrays[at : at + self.n_in], arrays[at + self.n_in :]
        moved = as_tuple(self.hooks.rule().jvp(self.argnums, tangents, one_or_tuple(results), arguments, statics))
        parts = [np.zeros_like(y) if t is None else t for t, y in zip(moved, results, strict=False)]
        return one_or_tuple([fit_dtype(np.asarray(t), y) for t, y in zip(parts, results, strict=True)])


class OnBatch:
    """Call an op on the examples of a batch; arguments in `axes`, and all results, have the batch axis in front."""

    def __init__(self, hooks: Hooks, axes: tuple[bool, ...]) -> None:
        self.hooks = hooks
        self.axes = axes
        self.__name__ = f"{hooks.name}_batch"
        self.__signature__ = signature_of([f"x{k}" for k in range(len(axes))], hooks.statics)

    def size(self, shapes: Sequence[Any]) -> Any:
        """Return the number of examples; ValueError if the batches differ."""
        sizes = [shape[0] for shape, batched in zip(shapes, self.axes, strict=True) if batched]
        if any(size != sizes[0] for size in sizes if type(size) is type(sizes[0]) is int):
            raise ValueError(f"the batches of op {self.hooks.name!r} have {' and '.join(map(str, sizes))} examples")
        return sizes[0]

    def example(self, arrays: Sequence[Any], k: int) -> tuple[Any, ...]:
        """Return the arguments of one call."""
        return tuple([x[k] if batched else x for x, batched in zip(arrays, self.axes, strict=True)])

    def __call__(self, *arrays: Any, **statics: Any) -> Any:
        n = self.size([x.shape for x in arrays])
        if n == 0:
            kinds = [(x.dtype, x.shape[batched:]) for x, batched in zip(arrays, self.axes, strict=True)]
            specs = self.hooks.infer(kinds, statics)
            return one_or_tuple([np.empty((0, *(size or 0 for size in shape or ())), d) for d, shape in specs])
        calls = [self.hooks.call(self.example(arrays, k), statics) for k in range(n)]
        return one_or_tuple([np.stack(parts) for parts in zip(*calls, strict=True)])

    @property
    def _pyop_gradient_rule(self) -> Rule | None:
        return _OfBatch(self) if self.hooks.differentiable else None


class _OfBatch(Rule):
    """Differentiate each example; an argument that all of them read gets the sum."""

    def __init__(self, function: OnBatch) -> None:
        super().__init__(function)
        self.function = function

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        f = self.function
        needs = tuple(k in argnums for k in range(len(args)))

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts, gradients = as_tuple(ct), []
            for k in range(f.size([x.shape for x in args])):
                _, kept = f.hooks.forward(*f.example(args, k), **kwargs)
                gradients.append(f.hooks.backward(kept, [None if c is None else c[k] for c in cts], needs))
            return tuple([_gathered([each[j] for each in gradients], f.axes[j], args[j]) for j in argnums])

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        f, output_tangents = self.function, []
        given = dict(zip(argnums, tangents, strict=True))
        full = [given.get(j) for j in range(len(args))]
        for k in range(f.size([x.shape for x in args])):
            each = [t if t is None or not f.axes[j] else t[k] for j, t in enumerate(full)]
            output_tangents.append(f.hooks.jvp(f.example(args, k), each, **kwargs)[1])
        if not output_tangents:
            return one_or_tuple([np.zeros_like(y) for y in as_tuple(ans)])
        return one_or_tuple([np.stack(parts) for parts in zip(*output_tangents, strict=True)])


def _gathered(parts: list[Any], batched: bool, like: Any) -> Any:
    known = [np.zeros(like.shape[batched:], like.dtype) if p is None else p for p in parts]
    if not known:
        return np.zeros_like(like)
    add: Callable[..., Any] = np.stack if batched else sum
    return add(known)
