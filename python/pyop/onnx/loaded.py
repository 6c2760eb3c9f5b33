"""Define `LoadedGraph`, a graph that came from an ONNX model, and can become one again."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx import TypeProto

from .. import _core
from .._core import Value
from .._tree import TreeDef
from ..graph.graph import Graph
from ..graph.node_call import Record
from ..saving.parts import Parts, parts_of, put_into, set_origins
from .boxes import Unboxing

__all__ = ["LoadedGraph", "ModelFacts", "facts_of"]


@dataclass
class ModelFacts:
    """Hold what a model says beside the nodes of its graph."""

    defaults: dict[str, Any] = field(default_factory=dict)  # arrays of inputs that need not be fed
    fixed: dict[str, int] = field(default_factory=dict)  # inputs that became constants, and the index of the constant
    # onnx.TypeProto of inputs and outputs of which a Spec says less, by node and output.
    types: dict[tuple[int, int], Any] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        """Return all of it as JSON has it, but for arrays."""
        types = [[*place, base64.b85encode(kind.SerializeToString()).decode()] for place, kind in self.types.items()]
        return {"defaults": self.defaults, "fixed": self.fixed, "types": types}

    def check(self, outputs: list[int]) -> None:
        """Hold it against a graph, of whose nodes it has the number of outputs; a ValueError if it is of another."""
        for node, output in (*self.types, *((index, 0) for index in self.fixed.values())):
            if not (0 <= node < len(outputs) and 0 <= output < outputs[node]):
                raise ValueError(f"node {node} of the graph has no output {output}, that the description names")

    def __reduce__(self) -> Any:
        return facts_of, (None, self.description())


def facts_of(_home: Any, description: Mapping[str, Any]) -> ModelFacts:
    """Return the facts of a description; those of earlier versions hold more, which the nodes hold themselves today."""
    types = {
        (int(node), int(output)): TypeProto.FromString(base64.b85decode(text))
        for node, output, text in description["types"]
    }
    fixed = {str(name): int(index) for name, index in description["fixed"].items()}
    return ModelFacts(dict(description["defaults"]), fixed, types)


class LoadedGraph(Graph):
    """Represent the Graph of an ONNX model, whose results may be sequences, maps or missing.

    More nodes can be added to it, ``with graph: ...``, and other outputs declared; it is exported and saved with them.
    """

    __slots__ = ("_facts",)

    _facts: ModelFacts

    def type_of(self, value: Value) -> Any:
        """Return the onnx.TypeProto of an input or output, where a Spec says less; else None."""
        return self._facts.types.get((value.node.index, value.output_index))

    def output(self, tree: Any) -> None:
        """Declare what the graph computes, instead of the outputs that it has from its model.

        Parameters
        ----------
        tree : tree of Value
            As `Graph.output` has it.

        Examples
        --------
        >>> import numpy as np, pyop, pyop.onnx
        >>> loaded = pyop.onnx.load(pyop.onnx.export(pyop.trace(lambda x: np.exp(x), "float64[n]")))
        >>> with loaded:
        ...     loaded.output({"total": np.sum(loaded.outputs["exp"])})
        >>> loaded.compile()(x=np.zeros(3))
        {'total': array(3.)}
        """
        before, self._outputs = self._outputs, None
        try:
            super().output(tree)
        except BaseException:
            self._outputs = before
            raise

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Return the model's arrays for inputs which need not be fed: those of ``load(..., overridable=...)``."""
        return dict(self._facts.defaults)

    def _feeds(self, feeds: Mapping[Any, Any]) -> tuple[list[Value], list[Any]]:
        if isinstance(feeds, Mapping):
            fixed = self._facts.fixed
            known = {key for key in feeds if isinstance(key, str) and key in fixed}
            feeds = {self._value(fixed[key], 0) if key in known else key: array for key, array in feeds.items()}
            missing = self._facts.defaults.keys() - feeds.keys() if self._facts.defaults else ()
            if missing:
                given = {key._key for key in feeds if isinstance(key, Value)}
                left = {value.name: value for value in self.inputs if value.name in missing and value._key not in given}
                feeds = {**feeds, **{value: self._facts.defaults[name] for name, value in left.items()}}
        return super()._feeds(feeds)

    def __reduce__(self) -> Any:
        parts: Any = super().__reduce__()
        return _remade, (self._facts, *parts[1])

    def __copy__(self) -> LoadedGraph:
        return _put_together(parts_of(self), self._facts)

    def __deepcopy__(self, memo: Any) -> LoadedGraph:
        return self.__copy__()

    def _compile(self, leaves: list[Any], structure: TreeDef, feeds: Iterable[Value], **options: Any) -> Any:
        unboxing: Any = Unboxing(structure)  # which the core asks for no more than `unflatten`
        # What a stranger's model makes of its constants may be of any size: it is computed when somebody runs it.
        disable = tuple(dict.fromkeys((*options.get("disable", ()), "fold")))
        whole, threads, fast = options["whole"], options["threads"], options.get("fast", False)
        return _core.compile(self, tuple(leaves), tuple(feeds), 3, unboxing, whole, disable, threads, fast)


def _put_together(parts: Parts, facts: ModelFacts) -> LoadedGraph:
    made = put_into(LoadedGraph(name=parts.name), parts)
    made._facts = facts
    return made


def _remade(
    facts: ModelFacts, name: str, records: Any, outputs: Any, writes: Any, absorbed: Any, origins: Mapping[str, Any]
) -> Graph:
    parts = Parts(name, tuple(Record(*record) for record in records), outputs, writes, absorbed)
    return set_origins(_put_together(parts, facts), origins)


# In pickles of earlier versions.
def _unpickled(name: str, records: Any, outputs: Any, facts: ModelFacts) -> Graph:
    return _put_together(Parts(name, tuple(Record(*record) for record in records), outputs), facts)
