"""Differentiate loops and branches in graphs: by further ones, of the derivatives of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Value
from ..declare.spec import Spec
from ..gradients.table import Pullback, Rule
from ..gradients.unbroadcast import fit_dtype
from ..graph.graph import Graph
from ..transforms.forward import forward
from ..transforms.reverse import backward, carries
from .activity import Activity, check_no_effects
from .bodies import called, copied, input_like
from .walked_back import walk_back

if TYPE_CHECKING:
    from .node import Branch, Loop

__all__ = ["rule_of_branch", "rule_of_loop"]


class _OfNode(Rule):
    """Hold the rule of a Loop or Branch, which is written for Values: on arrays a graph is made for it."""

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        several = isinstance(ans, (tuple, list))

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = list(ct) if several else [ct]

            def back(given: Sequence[Value], cts: Sequence[Any]) -> list[Any]:
                found = self.pull(given, cts, set(argnums), ans)
                return [found[k] for k in argnums]

            return tuple(_in_graph(back, args, cts))

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        full = [dict(zip(argnums, tangents, strict=True)).get(k) for k in range(len(args))]
        found = _in_graph(self.push, args, full)
        return tuple(found) if isinstance(ans, (tuple, list)) else found[0]

    def pull(self, args: Sequence[Value], cts: Sequence[Any], wanted: set[int], ans: Any) -> list[Any]:
        """Return the cotangents of the arguments; `ans` are the results, if they are Values."""
        raise NotImplementedError

    def push(self, args: Sequence[Value], tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of the results."""
        raise NotImplementedError


class _OfLoop(_OfNode):
    func: Loop

    def pull(self, args: Sequence[Value], cts: Sequence[Any], wanted: set[int], ans: Any) -> list[Any]:
        return walk_back(self.func, args, cts, wanted, {}, ans if isinstance(ans, (tuple, list)) else [ans])

    def adds_to(self, argument: int) -> bool:
        """Return whether an argument's cotangent is a sum over the iterations, which may begin with a given one."""
        return argument >= 2 + self.func.carried

    def pull_onto(
        self, args: Sequence[Value], cts: Sequence[Any], wanted: set[int], results: Any, sums: dict[int, Value]
    ) -> Any:
        """Return what `pull` does, with `sums` added to the cotangents of those arguments."""
        found = walk_back(self.func, args, cts, wanted, sums, results)
        return [sums.get(k) if ct is None else ct for k, ct in enumerate(found)]

    def push(self, args: Sequence[Value], tangents: Sequence[Any]) -> list[Any]:
        loop = self.func
        check_no_effects(loop.body)
        n, graph = loop.carried, args[2].graph
        given = [k - 1 for k, t in enumerate(tangents) if k > 1 and t is not None and carries(args[k])]
        active = Activity(loop.body, n).varied(given)
        kept = [k for k in range(1, n + 1) if k in active]
        also = [k for k in range(n + 1, len(args) - 1) if k in active]
        body = Graph(name="body")
        inputs = [input_like(body, value) for value in loop.body.inputs[: n + 1]]
        moved = [input_like(body, inputs[k], "tangent") for k in kept]
        inputs += [input_like(body, value) for value in loop.body.inputs[n + 1 :]]
        moved += [input_like(body, inputs[k], "tangent") for k in also]
        known = {old._key: new for old, new in zip(loop.body.inputs, inputs, strict=True)}
        outputs = copied(loop.body, body, loop.body._output_leaves()[0], known)
        found = forward([outputs[k - 1] for k in kept], [inputs[k] for k in (*kept, *also)], moved)
        pairs = zip(found, kept, strict=True)
        after = [np.zeros_like(outputs[k - 1]) if t is None else t for t, k in pairs]
        body.output([*outputs[:n], *after, *outputs[n:]])
        made = type(loop)(body, n + len(kept), loop.step, loop.conditional, loop.checkpoint)
        pairs_moved = [(tangents[k + 1], args[k + 1]) for k in (*kept, *also)]
        shifted: list[Any] = [np.zeros_like(x) if t is None else _fit(t, x) for t, x in pairs_moved]
        starts = [*args[2 : n + 2], *shifted[: len(kept)]]
        rest = [*args[n + 2 :], *shifted[len(kept) :]]
        results = called(graph, made, [*args[:2], *starts, *rest], starts)
        known_results = dict(zip(kept, results[n:], strict=True))
        return [known_results.get(k) for k in range(1, n + 1)]


class _OfBranch(_OfNode):
    func: Branch

    def pull(self, args: Sequence[Value], cts: Sequence[Any], wanted: set[int], ans: Any) -> list[Any]:
        truth, graph = args[0], args[0].graph
        check_no_effects(self.func.yes, self.func.no)
        first = len(self.func.yes.inputs)
        shown = [k for k, ct in enumerate(cts) if ct is not None]
        likes = [self.func.yes._output_leaves()[0][k] for k in shown]
        kept = sorted(k for k in wanted if k > 0 and carries(args[k]))
        if not kept or not shown:
            return [None] * len(args)
        parts = []
        for part, start in ((self.func.yes, 1), (self.func.no, 1 + first)):
            made = Graph(name="branch")
            inputs = {k: input_like(made, args[k]) for k in range(1, len(args))}
            given = [input_like(made, like, "ct") for like in likes]
            known = {value._key: inputs[start + k] for k, value in enumerate(part.inputs)}
            outputs = copied(part, made, [part._output_leaves()[0][k] for k in shown], known)
            found = dict(zip(kept, backward(outputs, given, [inputs[k] for k in kept], ()), strict=True))
            made.output([np.zeros_like(inputs[k]) if found[k] is None else found[k] for k in kept])
            parts.append(made)
        inputs_of_each = [*args[1:], *[_fit(cts[k], like) for k, like in zip(shown, likes, strict=True)]]
        results = called(
            graph, type(self.func)(*parts), [truth, *inputs_of_each, *inputs_of_each], [args[k] for k in kept]
        )
        pulled = dict(zip(kept, results, strict=True))
        return [pulled.get(k) for k in range(len(args))]

    def push(self, args: Sequence[Value], tangents: Sequence[Any]) -> list[Any]:
        truth, graph = args[0], args[0].graph
        check_no_effects(self.func.yes, self.func.no)
        first = len(self.func.yes.inputs)
        likes = self.func.yes._output_leaves()[0]
        shown = [k for k, like in enumerate(likes) if carries(like)]
        kept = [k for k, t in enumerate(tangents) if k > 0 and t is not None and carries(args[k])]
        if not kept or not shown:
            return [None] * len(likes)
        parts, feeds = [], [truth]
        for part, start in ((self.func.yes, 1), (self.func.no, 1 + first)):
            made = Graph(name="branch")
            places = range(start, start + len(part.inputs))
            inputs = {k: input_like(made, args[k]) for k in places}
            mine = [k for k in kept if k in places]
            moved = [input_like(made, args[k], "tangent") for k in mine]
            known = {value._key: inputs[start + k] for k, value in enumerate(part.inputs)}
            leaves = part._output_leaves()[0]
            outputs = copied(part, made, [leaves[k] for k in shown], known)
            found = forward(outputs, [inputs[k] for k in mine], moved)
            made.output([np.zeros_like(y) if t is None else t for t, y in zip(found, outputs, strict=True)])
            parts.append(made)
            feeds += [*[args[k] for k in places], *[_fit(tangents[k], args[k]) for k in mine]]
        results = called(graph, type(self.func)(*parts), feeds, [likes[k] for k in shown])
        pushed = dict(zip(shown, results, strict=True))
        return [pushed.get(k) for k in range(len(likes))]


def _fit(t: Any, like: Value) -> Any:
    """Return a cotangent or tangent as an array, in the dtype of the Value that it belongs to."""
    return fit_dtype(t.array() if hasattr(t, "array") else t, like)


def _in_graph(work: Callable[..., list[Any]], args: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return ``work(args, others)`` in the graph of the Values among them; for arrays by a graph made for it."""
    graph = next((x.graph for x in (*args, *others) if isinstance(x, Value)), None)
    if graph is not None:
        constant = graph.constant
        return work([x if isinstance(x, Value) else constant(x) for x in args], others)
    made = Graph(name="derivative")
    feeds: dict[Value, Any] = {}

    def opened(x: Any) -> Any:
        if x is None:
            return None
        value: Value = made._add_input(Spec.of(np.asarray(x)), "input", False)
        feeds[value] = np.asarray(x)
        return value

    found = work([opened(x) for x in args], [opened(x) for x in others])
    arrays = iter(made.run([x for x in found if x is not None], feeds))
    return [None if x is None else next(arrays) for x in found]


def rule_of_loop(loop: Any) -> Rule:
    """Return the rule of a Loop."""
    return _OfLoop(loop)


def rule_of_branch(branch: Any) -> Rule:
    """Return the rule of a Branch."""
    return _OfBranch(branch)
