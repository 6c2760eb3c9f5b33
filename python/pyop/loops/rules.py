"""Derivatives of loops in graphs: those of their iterations, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import Value
from ..declare.dim import Dim
from ..declare.rebuild import replaced
from ..declare.spec import Spec
from ..gradients.table import NoRule, Rule
from ..gradients.unbroadcast import number_of
from ..graph.node_call import add, call_of, record_of
from ..graph.sizes import apply
from ..transforms.composite import Composite

__all__ = ["rule_of_branch", "rule_of_loop"]

_MOST = 10_000
_INSTEAD = "take the derivative of the function that is not compiled, pyop.grad(f), which runs it as Python does"


def rule_of_loop(loop: Any) -> Rule:
    """The rule of a Loop."""
    return Composite(loop, _unrolled(loop))


def _unrolled(loop: Any) -> Callable[..., Any]:
    def unrolled(lower: Any, upper: Any, *arrays: Any) -> Any:
        first, end = number_of(lower), number_of(upper)
        if loop.conditional or first is None or end is None:
            raise NoRule(
                "a loop in a graph has a gradient rule where the number of iterations is known when the graph is "
                f"built, and here it is not: use pyop.fori_loop with numbers, or {_INSTEAD}"
            )
        numbers = range(first, end, loop.step)
        if len(numbers) > _MOST:
            raise NoRule(f"the derivative of a loop of {len(numbers)} iterations is too large for a graph: {_INSTEAD}")
        state, constant = list(arrays[: loop.carried]), arrays[loop.carried :]
        for i in numbers:
            state = _iteration(loop.body, i, (*state, *constant))[: loop.carried]
        return tuple(state) if loop.carried != 1 else state[0]

    return unrolled


def _iteration(body: Any, i: int, arrays: tuple[Any, ...]) -> list[Any]:
    """The nodes of a body once more, in the graph of its inputs, with its number in the place of the counter."""
    graph = next(x for x in arrays if type(x) is Value).graph
    new: dict[int, Any] = {}
    for value, given in zip(body.inputs, (np.asarray(i, np.int64), *arrays), strict=True):
        new[value._key] = given if type(given) is Value else graph.constant(given)
    counters: set[str] = set()

    def number(x: Any) -> Any:
        if type(x) is Value:
            return new[x._key]
        return x.evaluate(dict.fromkeys(counters, i)) if type(x) is Dim else x

    for node in body.nodes:
        if node.kind == "input":
            continue
        carriers = call_of(node).carriers if node.kind == "py" else None
        found = {name for name, (_, axis) in (carriers or {}).items() if axis < 0}
        if not found:
            made = add(graph, record_of(node), lambda index, output: new[body._value(index, output)._key]).outputs
        else:
            counters |= found
            call = call_of(node)
            several = tuple([_settled(value.spec, number) for value in node.outputs])
            specs: Any = several if len(several) > 1 else several[0]
            args, kwargs = replaced((call.args, call.kwargs), number)
            scalar = node.outputs[0]._is_scalar
            result = apply(call.function, args, kwargs, specs, name=_stem(node), scalar=scalar)
            made = result if isinstance(result, tuple) else (result,)
        new.update({old._key: value for old, value in zip(node.outputs, made, strict=True)})
    leaves, _ = body._output_leaves()
    return [new[leaf._key] for leaf in leaves]


def _settled(spec: Spec, number: Callable[[Any], Any]) -> Spec:
    return spec if spec.shape is None else Spec(spec.dtype, tuple([number(size) for size in spec.shape]))


def _stem(node: Any) -> str:
    name: str = node.name
    return name.rstrip("0123456789").rstrip("_") or name


class _OfBranch(Rule):
    """The rule of a Branch: there is none."""

    def vjp(self, *args: Any) -> NoReturn:
        raise NoRule(f"pyop.cond of a Value has no gradient rule in a graph: choose with np.where, or {_INSTEAD}")

    jvp = vjp  # type: ignore[assignment]


def rule_of_branch(branch: Any) -> Rule:
    """The rule of a Branch."""
    return _OfBranch(branch)
