"""Record a `Function` called with Values as a node of their graph, whose derivatives are the Function's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import FunctionClass, Tensor, Value
from .._tree import contains, flatten
from ..declare.rebuild import MergedByValue, walk
from ..declare.spec import Spec
from ..gradients import saved, table
from ..graph.calls import apply
from ..graph.views import share
from ..graph.writes import write
from ..refusals import refusal
from .arrays import check_no_history, spec_of
from .function_effects import Effects, check_no_number, find_effects, read_only
from .linear import Alias, Copy

__all__ = ["FunctionCall", "apply_symbolic"]

_CONTEXT = Spec(np.int64, (1,))


def apply_symbolic(function: FunctionClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Add a node for a call of a Function with Values among its arguments, and store what its forward writes."""
    check_no_history(f"{function.name}.apply: ", table.leaves(args, kwargs))
    if kwargs:
        args, kwargs = function._bind(args, kwargs)
    _check_within_reach(function.name, args)
    leaves = table.leaves(args, kwargs)
    specs, scalar, effects = find_effects(function, args, kwargs)
    for _, k in effects.in_place:
        _check_alone(function, leaves, k)
    several = isinstance(specs, tuple)
    call = FunctionCall(function.cls, len(specs) if several else None, effects, specs if several else (specs,))
    returned = (*(specs if several else (specs,)), *((_CONTEXT,) if effects.hidden else ()))
    single = not several and not effects.hidden
    specs_of_call = specs if single else returned
    next(x for x in leaves if isinstance(x, Value)).graph._keep(FunctionCall)
    made = apply(call, args, kwargs, specs_of_call, name=function.name, stateful=effects.hidden, scalar=scalar)
    results = [made] if single else list(made)[: len(specs) if several else 1]
    written = dict(effects.in_place)
    share(call, args, kwargs, [y for at, y in enumerate(results) if at not in written], known=False)
    for at, k in written.items():
        contents, results[at] = results[at], leaves[k]
        write(leaves[k], Ellipsis, contents, False)
    return tuple(results) if several else results[0]


def _check_alone(function: FunctionClass, leaves: list[Any], k: int) -> None:
    """Raise for a write of forward that NumPy would show in another argument, or that nobody can see."""
    target = leaves[k]
    if not isinstance(target, Value):
        what = "an array that the graph holds as a constant: give it to the function as an argument"
    elif target._is_scalar is not False or target.ndim is None:
        what = "a scalar, or an array of unknown dimensions: make it an array of a known one"
    elif any(n != k and isinstance(x, Value) and (x is target or x._is_related(target)) for n, x in enumerate(leaves)):
        what = "an argument that shares memory with another one: pass a copy of one of them"
    else:
        target._check_writable(f"{function.name}.apply")
        return
    raise refusal(f"forward of {function.name} writes into {what}")


def _check_within_reach(name: str, args: tuple[Any, ...]) -> None:
    """Raise for Values inside containers that a node of a graph does not look into."""
    for part in flatten(args, is_leaf=lambda x: hasattr(type(x), "__dataclass_fields__"))[0]:
        hidden = type(part) is not Value and (contains(part, Value) or any(type(x) is Value for x in walk(part)))
        if hidden:
            raise refusal(
                f"{name}.apply: an array of the graph stands in a {type(part).__name__}, and in a graph only tuples, "
                "lists, dicts and named tuples are looked into: pass the array itself, or one of these"
            )


class _OfFunction(MergedByValue):
    """Represent the callable of a node; nodes with equal ones are merged."""

    def __init__(self, cls: Any, *key: Any) -> None:
        self.cls = cls
        self._key = (type(self), cls, *key)
        self.__name__ = cls.__name__

    def __reduce__(self) -> Any:
        return type(self), self._key[1:]


class FunctionCall(_OfFunction):
    """Call forward on arrays.

    `count` is the number of results, None for one that is no tuple. `specs` says what is known of them: the graph was
    made for such results, so others are an error.
    """

    _pyop_checks_results = True

    def __init__(
        self,
        cls: Any,
        count: int | None,
        effects: Effects = Effects(),  # noqa: B008  # frozen
        specs: tuple[Spec, ...] = (),
    ) -> None:
        super().__init__(cls, count, effects, specs)
        self.count, self.effects, self.specs = count, effects, specs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = apart(self.effects, args, kwargs)
        if not self.effects.hidden:
            return self._checked(_core.call_recording(False, self.cls.apply, args, kwargs))
        record = Record(self.cls, args, kwargs, self.effects.written)
        result = self._checked(record.result)
        context = saved.Context(record).array()
        return (*result, context) if isinstance(result, tuple) else (result, context)

    def _checked(self, result: Any) -> Any:
        if (len(result) if isinstance(result, tuple) else None) != self.count:
            raise TypeError(
                f"forward of {self.__name__} returned {len(result) if isinstance(result, tuple) else 'one'} result(s), "
                "and that was not known when the graph was built, since it does not work on symbolic arrays: declare "
                "it as a pyop.op with a .vjp, which says what it returns"
            )
        for y, spec in zip(result if isinstance(result, tuple) else (result,), self.specs, strict=False):
            self._check(y, spec)
        return result

    def _check(self, y: Any, spec: Spec) -> None:
        check_no_number(self.__name__, y)
        have = spec_of(y)
        same_kind = spec.dtype is None or have.dtype == spec.dtype
        if not same_kind or (spec.shape is not None and not _fits(have.shape, spec.shape)):
            raise TypeError(
                f"forward of {self.__name__} returned {have}, and {spec} for such arguments when the graph was built: "
                "it reads something that has changed since, a global name or an attribute, which is to be an argument "
                "where the dtype or the shape of the result depends on it"
            )

    @property
    def _pyop_gradient_rule(self) -> table.Rule:
        return _Rule(self)


def _fits(have: Any, known: tuple[Any, ...]) -> bool:
    """Hold a shape against one of which some sizes may not be numbers."""
    return len(have) == len(known) and all(
        type(size) is not int or size == n for n, size in zip(have, known, strict=True)
    )


def apart(effects: Effects, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of forward, copied where it writes into them.

    If it is unknown where it writes, they are read-only.
    """
    written = effects.written
    change: dict[int, Any] = {}
    for k, leaf in enumerate(table.leaves(args, kwargs) if written or not effects.known else ()):
        if type(leaf) is np.ndarray and (k in written or not effects.known):
            change[k] = leaf.copy(order="K") if k in written else read_only(leaf)
    return table.replaced(args, kwargs, change) if change else (args, kwargs)


class Record:
    """Record a call of a Function.

    `result` has its arrays. `pull` runs backward through the call, any number of times.
    """

    def __init__(self, cls: Any, args: Any, kwargs: dict[str, Any], written: frozenset[int]) -> None:
        self.inputs: dict[int, Tensor] = {}
        change = {}
        for k, leaf in enumerate(table.leaves(args, kwargs)):
            if issubclass(type(leaf), (np.ndarray, np.generic)) and leaf.dtype.kind in "fc":
                self.inputs[k] = Tensor(leaf, requires_grad=True)
                # A leaf may not be written into, what was computed of it may.
                opened = Copy.apply if k in written else Alias.apply
                change[k] = _core.call_recording(True, opened, (self.inputs[k],), {})
        given = table.replaced(args, kwargs, change)
        made = _core.call_recording(True, _core.call_without_tangents, (cls.apply, *given), {})
        self.outputs = made if isinstance(made, tuple) else (made,)
        arrays = tuple([y.numpy() if type(y) is Tensor else y for y in self.outputs])
        self.result = arrays if isinstance(made, tuple) else arrays[0]

    def pull(self, which: Sequence[int], given: Sequence[int], cts: Sequence[Any]) -> tuple[Any, ...]:
        """Return cotangents of the leaves `which`, for those of the results `given`."""
        inputs = tuple([self.inputs[k] for k in which])
        pairs = [(self.outputs[k], ct) for k, ct in zip(given, cts, strict=True)]
        pairs = [(y, ct) for y, ct in pairs if type(y) is Tensor and y.requires_grad]
        run = (tuple([y for y, _ in pairs]), tuple([ct for _, ct in pairs]), inputs, True, False, False, True, False)
        gradients: Any = [None] * len(inputs)
        if pairs:
            gradients = _core.call_recording(True, _core.call_without_tangents, (_core.run_backward, run, {}), {})
        return tuple(
            [np.zeros(x.shape, x.dtype) if g is None else g.numpy() for g, x in zip(gradients, inputs, strict=True)]
        )


class _Rule(table.Rule):
    """Differentiate by backward and jvp of the Function, each as a node."""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> table.Pullback:
        several = isinstance(ans, tuple)
        inputs = table.leaves(args, kwargs)
        effects = self.func.effects

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = tuple(ct) if several else (ct,)
            given = tuple(k for k, c in enumerate(cts) if c is not None)
            call = FunctionBackward(self.func.cls, argnums, given, effects)
            of = ((ans[-1],), {}) if effects.hidden else (args, kwargs)
            specs = tuple([inputs[k].spec for k in argnums])
            return tuple(apply(call, (tuple([cts[k] for k in given]), *of), {}, specs))

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.func.effects.hidden:
            raise table.NoRule(
                f"the tangent of {self.func.__name__}, a pyop.Function that depends on more than its arguments, in "
                "a graph, where forward would run once more: take it at arrays, or declare `stateful = False` in the "
                "class if forward always returns the same for the same arguments"
            )
        several = isinstance(ans, tuple)
        results = ans if several else (ans,)
        moves = tuple([y.dtype is None or y.dtype.kind in "fc" for y in results])
        call = FunctionForward(self.func.cls, argnums, moves, self.func.effects)
        specs = tuple([y.spec for y, moving in zip(results, moves, strict=True) if moving])
        if not specs:
            return (None,) * len(results) if several else None
        output_tangents = iter(apply(call, (tuple(tangents), args, kwargs), {}, specs))
        pushed = tuple([next(output_tangents) if moving else None for moving in moves])
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
    """Compute cotangents of the leaves numbered `argnums` from those of the results numbered `given`.

    Its arguments are the context of the call, if forward keeps one, else those of forward, which runs once more.
    """

    def __init__(
        self,
        cls: Any,
        argnums: tuple[int, ...],
        given: tuple[int, ...],
        effects: Effects = Effects(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__(cls, argnums, given, effects)
        self.argnums, self.given, self.effects = argnums, given, effects
        self.__name__ = f"{cls.__name__}Backward"

    def __call__(self, cts: tuple[Any, ...], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if self.effects.hidden:
            record: Record = saved.residuals_of(args[0], self.cls.__name__)
        else:
            record = Record(self.cls, *apart(self.effects, args, kwargs), self.effects.written)
        return record.pull(self.argnums, self.given, cts)

    _pyop_gradient_rule = property(_Second)


class FunctionForward(_OfFunction):
    """Compute tangents of the results from those of the leaves numbered `argnums`."""

    def __init__(
        self,
        cls: Any,
        argnums: tuple[int, ...],
        moves: tuple[bool, ...],
        effects: Effects = Effects(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__(cls, argnums, moves, effects)
        self.argnums, self.moves, self.effects = argnums, moves, effects
        self.__name__ = f"{cls.__name__}Forward"

    def __call__(self, tangents: tuple[Any, ...], args: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        from .forward import jvp

        args, kwargs = apart(self.effects, args, kwargs)
        leaves = table.leaves(args, kwargs)
        primals = tuple([Tensor(leaves[k]) for k in self.argnums])

        def run() -> Any:
            return jvp(table.of_leaves(self.cls.apply, self.argnums, args, kwargs), primals, tangents)[1]

        pushed = _core.call_recording(False, _core.call_without_tangents, (run, (), {}), {})
        parts = pushed if isinstance(pushed, tuple) else (pushed,)
        return tuple([t.numpy() for t, moving in zip(parts, self.moves, strict=True) if moving])

    _pyop_gradient_rule = property(_Second)
