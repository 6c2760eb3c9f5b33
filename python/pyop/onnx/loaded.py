"""`LoadedGraph`: a graph that came from an ONNX model, and can become one again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Value
from .._tree import TreeDef
from ..graph.graph import Graph
from .boxes import Unboxing

if TYPE_CHECKING:
    from .held import HeldModel

__all__ = ["LoadedGraph"]


class LoadedGraph(Graph):
    """A Graph of an ONNX model: its results may be sequences, maps or missing.

    More nodes can be added to it, ``with graph: ...``, and other outputs declared; it is exported and saved with them.
    """

    __slots__ = ("_held",)

    _held: HeldModel

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
        """The arrays that the model has for inputs which need not be fed: those of ``load(..., overridable=...)``."""
        return dict(self._held.defaults)

    def _feeds(self, feeds: Mapping[Any, Any]) -> tuple[list[Value], list[Any]]:
        if isinstance(feeds, Mapping):
            fixed = self._held.fixed
            known = {key for key in feeds if isinstance(key, str) and key in fixed}
            feeds = {self._value(fixed[key], 0) if key in known else key: array for key, array in feeds.items()}
            missing = self._held.defaults.keys() - feeds.keys() if self._held.defaults else ()
            if missing:
                given = {key._key for key in feeds if isinstance(key, Value)}
                left = {value.name: value for value in self.inputs if value.name in missing and value._key not in given}
                feeds = {**feeds, **{value: self._held.defaults[name] for name, value in left.items()}}
        return super()._feeds(feeds)

    def __reduce__(self) -> Any:
        parts: Any = super().__reduce__()
        return _unpickled, (*parts[1], self._held)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        from ..saving.parts import parts_of, put_into

        made = put_into(LoadedGraph(name=self.name), parts_of(self))
        made._held = self._held
        memo[id(self)] = made
        return made

    def _compile(
        self,
        leaves: list[Any],
        structure: TreeDef,
        feeds: Iterable[Value],
        *,
        whole: bool,
        threads: int,
        disable: tuple[str, ...] = (),
        fast: bool = False,
    ) -> Any:
        unboxing: Any = Unboxing(structure)  # which the core asks for no more than `unflatten`
        # What a stranger's model makes of its constants may be of any size: it is computed when somebody runs it.
        disable = tuple(dict.fromkeys((*disable, "fold")))
        return _core.compile(self, tuple(leaves), tuple(feeds), 3, unboxing, whole, disable, threads, fast)


def _unpickled(name: str, records: Any, outputs: Any, held: HeldModel) -> Graph:
    from ..graph.node_call import Record
    from ..saving.parts import Parts, put_into

    parts = Parts(name, tuple(Record(*record) for record in records), outputs)
    made = put_into(LoadedGraph(name=name), parts)
    made._held = held
    return made
