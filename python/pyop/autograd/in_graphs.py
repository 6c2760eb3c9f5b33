"""A `Function` called with Values: a node of their graph, whose derivatives are those that the Function has."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import FunctionClass, Tensor, Value
from .._tree import flatten
from ..declare.rebuild import MergedByValue
from ..declare.spec import Spec
from ..gradients import table
from ..graph.calls import apply
from ..graph.views import share
from ..refusals import call_watched
from .arrays import check_no_history, spec_of

__all__ = ["FunctionCall", "apply_symbolic"]


def apply_symbolic(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a Function with Values among its arguments becomes a node."""
    check_no_history(f"{function.name}.apply: ", flatten((args, kwargs))[0])
    if kwargs:
        args, kwargs = function._bind(args, kwargs)
    specs = _results(function, args, kwargs)
    call = FunctionCall(function.cls, len(specs) if isinstance(specs, tuple) else None)
    made = apply(call, args, kwargs, specs, name=function.name)
    share(call, args, kwargs, made, known=False)  # forward may return its argument, or a view
    return made


class _Ctx:
    """In the place of ctx where only the types of results are wanted."""

    def _nothing(self, *args: Any) -> None:
        return None

    save_for_backward = save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = _nothing
    needs_input_grad = ()
    saved_tensors = ()


def _results(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The specs of what forward returns, found by calling it with Values of a graph of its own; one unknown array
    where it does not work on Values."""
    from ..tracing.trace import trace

    leaves, tree = flatten(args)
    which = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    found: list[Any] = []

    def on_values(*values: Any) -> Any:
        full = list(leaves)
        for k, value in zip(which, values, strict=True):
            full[k] = value
        arguments = tree.unflatten(full)
        forward = function.cls.forward
        with_ctx = getattr(function.cls, "setup_context", None) is None
        result = forward(*([_Ctx()] if with_ctx else []), *arguments, **kwargs)
        found.append(tuple(map(spec_of, result)) if isinstance(result, tuple) else spec_of(result))
        return values[0]

    try:
        call_watched(trace, (on_values, *[leaves[k].spec for k in which]), {})
    except Exception:
        return Spec()
    return found[0]


class _OfFunction(MergedByValue):
    """What nodes call. Equal ones are merged."""

    def __init__(self, cls: Any, *key: Any) -> None:
        self.cls = cls
        self._key = (type(self), cls, *key)
        self.__name__ = cls.__name__

    def __reduce__(self) -> Any:
        return type(self), self._key[1:]


class FunctionCall(_OfFunction):
    """Forward on arrays; `count` is the number of results, None for one that is no tuple."""

    def __init__(self, cls: Any, count: int | None) -> None:
        super().__init__(cls, count)
        self.count = count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = _core.call_recording(False, self.cls.apply, args, kwargs)
        if (len(result) if isinstance(result, tuple) else None) != self.count:
            raise TypeError(
                f"forward of {self.__name__} returned {len(result) if isinstance(result, tuple) else 'one'} result(s), "
                "and that was not known when the graph was built, since it does not work on symbolic arrays: declare "
                "it as a pyop.op with a .vjp, which says what it returns"
            )
        return result

    @property
    def _pyop_gradient_rule(self) -> table.Rule:
        return _Rule(self)


class _Rule(table.Rule):
    """Backward and jvp of the Function, each a node."""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> table.Pullback:
        several = isinstance(ans, tuple)
        inputs = table.leaves(args, kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = tuple(ct) if several else (ct,)
            given = tuple(k for k, c in enumerate(cts) if c is not None)
            call = FunctionBackward(self.func.cls, argnums, given)
            found = apply(
                call, (tuple([cts[k] for k in given]), args, kwargs), {}, tuple([inputs[k].spec for k in argnums])
            )
            return tuple(found)

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        several = isinstance(ans, tuple)
        results = ans if several else (ans,)
        moves = tuple([y.dtype is None or y.dtype.kind in "fc" for y in results])
        call = FunctionForward(self.func.cls, argnums, moves)
        specs = tuple([y.spec for y, moving in zip(results, moves, strict=True) if moving])
        if not specs:
            return (None,) * len(results) if several else None
        found = iter(apply(call, (tuple(tangents), args, kwargs), {}, specs))
        pushed = tuple([next(found) if moving else None for moving in moves])
        return pushed if several else pushed[0]


class _Second(table.Rule):
    def vjp(self, argnums: Any, ans: Any, args: Any, kwargs: Any) -> table.Pullback:
        raise table.NoRule(
            f"the second derivative of {self.func.__name__}, a pyop.Function, in a graph: take it at arrays (without "
            "pyop.compile or trace), or make an op of it, whose .vjp may have one of its own"
        )

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        self.vjp(argnums, ans, args, kwargs)


class FunctionBackward(_OfFunction):
    """Cotangents of the results numbered `given` to those of the leaves numbered `argnums`."""

    def __init__(self, cls: Any, argnums: tuple[int, ...], given: tuple[int, ...]) -> None:
        super().__init__(cls, argnums, given)
        self.argnums, self.given = argnums, given
        self.__name__ = f"{cls.__name__}Backward"

    def __call__(self, cts: tuple[Any, ...], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        leaves = table.leaves(args, kwargs)
        inputs = [Tensor(leaves[k], requires_grad=True) for k in self.argnums]

        def run() -> Any:
            made = table.of_leaves(self.cls.apply, self.argnums, args, kwargs)(*inputs)
            outputs = made if isinstance(made, tuple) else (made,)
            pairs = [(outputs[k], ct) for k, ct in zip(self.given, cts, strict=True)]
            pairs = [(y, ct) for y, ct in pairs if type(y) is Tensor and y.requires_grad]
            if not pairs:
                return [None] * len(inputs)
            return _core.run_backward(
                tuple([y for y, _ in pairs]),
                tuple([ct for _, ct in pairs]),
                tuple(inputs),
                *(False, False, False, True, False),
            )

        found = _core.call_recording(True, _core.call_without_tangents, (run, (), {}), {})
        return tuple(
            [np.zeros(x.shape, x.dtype) if g is None else g.numpy() for g, x in zip(found, inputs, strict=True)]
        )

    _pyop_gradient_rule = property(_Second)


class FunctionForward(_OfFunction):
    """Tangents of the leaves numbered `argnums` to those of the results that have any."""

    def __init__(self, cls: Any, argnums: tuple[int, ...], moves: tuple[bool, ...]) -> None:
        super().__init__(cls, argnums, moves)
        self.argnums, self.moves = argnums, moves
        self.__name__ = f"{cls.__name__}Forward"

    def __call__(self, tangents: tuple[Any, ...], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        from .forward import jvp

        leaves = table.leaves(args, kwargs)
        primals = tuple([Tensor(leaves[k]) for k in self.argnums])

        def run() -> Any:
            return jvp(table.of_leaves(self.cls.apply, self.argnums, args, kwargs), primals, tangents)[1]

        pushed = _core.call_recording(False, _core.call_without_tangents, (run, (), {}), {})
        parts = pushed if isinstance(pushed, tuple) else (pushed,)
        return tuple([t.numpy() for t, moving in zip(parts, self.moves, strict=True) if moving])

    _pyop_gradient_rule = property(_Second)
