"""Define `Graph`, a recorded computation that runs in parts or is compiled as a whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core
from .._core import GraphBase, GraphError, Node, Plan, Value
from .._tree import TreeDef, flatten
from ..declare.dtype_text import KINDS
from ..declare.parameters import check_name
from ..declare.spec import Spec
from ..interrupts import entered_as_a_whole

__all__ = ["Graph", "check_input_spec", "twinned"]

_SINGLE, _TUPLE, _LIST, _TREE = range(4)
_REMEMBERED_PLANS = 128


@entered_as_a_whole
class Graph(GraphBase):
    """Hold nodes in creation order, with named inputs and a tree of outputs.

    Inside ``with graph:`` every call of an op adds a node to it; so does any call on one of its Values.

    Parameters
    ----------
    name : str, optional

    Examples
    --------
    >>> import numpy as np, pyop
    >>> with pyop.Graph(name="g") as g:
    ...     x = g.input("float64[n]", name="x")
    ...     k = g.constant(2.0)
    ...     g.output({"r": np.sum(x * k)})
    >>> g.run(feeds={x: np.arange(3.0)})
    {'r': array(6.)}
    >>> plan = g.compile()
    >>> plan(np.ones(4))
    {'r': array(8.)}
    """

    __slots__ = (
        "__weakref__",
        "_absorbed",
        "_counters",
        "_deciding",
        "_extents",
        "_kept",
        "_known",
        "_name",
        "_numbers",
        "_outcomes",
        "_outputs",
        "_overflows",
        "_plans",
        "_read_only_outputs",
        "_reruns",
        "_rolling",
        "_sizes",
        "_twins",
        "_unrolled",
        "_weak",
        "_writes",
    )

    _name: str
    # Where the outputs are, not Values: those would keep the graph alive in a cycle.
    _outputs: tuple[list[tuple[int, int | None]], TreeDef] | None
    _read_only_outputs: dict[int, int]  # which of them nobody may write into, with the first that is the same array
    # Inputs that a plan of the whole graph writes into, by their place among the inputs: where what they hold then is.
    _writes: tuple[tuple[int, tuple[int, int]], ...]
    _plans: dict[Any, Plan]
    _kept: list[Any]  # what the functions of nodes need to be alive and do not own
    _known: dict[int, bool]  # of `pyop.graph.known`, by the number of the node
    _extents: dict[int, Any]  # of `pyop.gradients.extents`: what is known of sizes that are not, by the Value's key
    _twins: Any  # the `pyop.tracing.twins.Twins` that are called to build it, if any
    # The nodes that have become bodies of loops, which run them: pairs of the first and the one behind.
    _absorbed: tuple[tuple[int, int], ...]
    # The counters of loops whose bodies are written down: by the name that stands for the number, their nodes.
    _counters: dict[str, int]
    _reruns: dict[tuple[int, int], tuple[int, int]]  # results of loops and of their second runs (transforms/reruns.py)
    # How large the ints of loops may be (loops/numbers.py), if there are any; whether one may be no int64.
    _sizes: Any
    _overflows: bool
    _numbers: set[tuple[int, int]]  # Python numbers, as scalars: node and output of each
    _deciding: Any  # what a function under trace decides by (`deciding.py`), while it is traced for a call
    # What it has decided by, if it has: the number of the path, and the outcomes.
    _outcomes: tuple[int, ...] | None
    # The loops whose iterations are written down now, and those that are to be unrolled; None: all.
    _rolling: list[Any]
    _unrolled: Any
    _weak: Any  # the scalars that may be Python numbers (loops/weak.py), if there are any

    def __init__(self, name: str = "graph") -> None:
        self._name = check_name(name)
        self._outputs = None
        self._read_only_outputs = {}
        self._plans = {}
        self._kept = []
        self._known, self._extents = {}, {}
        self._twins, self._counters, self._reruns = None, {}, {}
        self._absorbed = self._writes = ()
        self._deciding = self._outcomes = None
        self._rolling, self._numbers = [], set()
        self._unrolled = self._weak = self._sizes = None
        self._overflows = False

    @property
    def name(self) -> str:
        """Return the name of the graph."""
        return self._name

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, in creation order."""
        return tuple(self[i] for i in range(len(self)))

    @property
    def outputs(self) -> Any:
        """Return the tree of output Values; None if there is none yet."""
        if self._outputs is None:
            return None
        leaves, structure = self._output_leaves()
        return structure.unflatten(leaves)

    def __getitem__(self, index: int | str, /) -> Node:
        if isinstance(index, str):
            from .names import node_by_name  # on first use: `import pyop` stays light

            return node_by_name(self, index)
        return super().__getitem__(index)

    def _keep(self, owner: Any) -> None:
        if not any(item is owner for item in self._kept):
            self._kept.append(owner)

    def input(self, spec: Any = None, name: str | None = None) -> Value:
        """Add an input and return its Value, to be fed when the graph runs.

        Parameters
        ----------
        spec : str, dtype, Spec or array, optional
            What may be fed: anything that `Spec.make` takes. Names of sizes are shared by all inputs of the graph.
        name : str, optional
            For feeding by name; made unique.

        Returns
        -------
        Value

        Examples
        --------
        >>> import pyop
        >>> g = pyop.Graph()
        >>> g.input("float64[n, 3]", name="x")
        <pyop.Value 'x' float64[n,3]>
        """
        return self._add_input(as_input_spec(spec), "input" if name is None else check_name(name))

    def constant(self, value: Any, name: str | None = None) -> Value:
        """Add a constant and return its Value. The array is copied, so later changes of it do not matter.

        Parameters
        ----------
        value : array_like
            Text keeps its NULs.
        name : str, optional
            Made unique.

        Returns
        -------
        Value

        Examples
        --------
        >>> import pyop
        >>> g = pyop.Graph()
        >>> g.run(g.constant([1, 2]))
        array([1, 2])
        """
        if isinstance(value, Value):
            raise TypeError(f"{value!r} is symbolic; only concrete values can be constants")
        return self._add_constant(_constant_array(value), "constant" if name is None else check_name(name))

    def _constant_output(self, leaf: Any) -> Value:
        held = getattr(leaf, "__dict__", None)
        keeps = isinstance(held, dict) and any(type(x) is Value for x in held.values())
        if keeps or isinstance(leaf, dict | set | frozenset | deque):
            raise TypeError(
                f"{self._name} returned an object of type {type(leaf).__name__}: return arrays and numbers, in tuples, "
                "lists, dicts, named tuples or dataclasses"
            )
        return self.constant(leaf)

    def output(self, tree: Any) -> None:
        """Declare what the graph as a whole computes, once.

        Parameters
        ----------
        tree : tree of Value
            Tuple, list, dict, named tuple or dataclass of Values; arrays and numbers in it become constants.

        Raises
        ------
        GraphError
            The graph has outputs already, or a Value belongs to another graph.

        Examples
        --------
        >>> import pyop
        >>> g = pyop.Graph()
        >>> x = g.input("float64[n]")
        >>> g.output({"double": 2.0 * x, "one": 1})
        >>> g.run(feeds={x: [1.0, 2.0]})
        {'double': array([2., 4.]), 'one': array(1)}
        """
        if self._outputs is not None:
            raise GraphError(f"graph {self._name!r} has outputs already; run other fetches with g.run(fetches, feeds)")
        leaves, structure = flatten(tree)
        leaves = [leaf if isinstance(leaf, Value | Node) else self._constant_output(leaf) for leaf in leaves]
        for leaf in leaves:
            if leaf.graph is not self:
                late = leaf._kept_text() if isinstance(leaf, Value) else None
                raise GraphError(late or f"{leaf!r} belongs to {leaf.graph!r} and cannot be an output of {self!r}")
        places: list[tuple[int, int | None]] = [
            (x.node.index, x.output_index) if isinstance(x, Value) else (x.index, None) for x in leaves
        ]
        self._outputs = (places, structure)
        fixed = [k for k, x in enumerate(leaves) if type(x) is Value and x._is_read_only()]
        self._read_only_outputs = {k: places.index(places[k]) for k in fixed}

    def run(self, fetches: Any = None, feeds: Mapping[Any, Any] | None = None, threads: int = 1) -> Any:
        """Compute what is fetched, and only what that needs.

        Parameters
        ----------
        fetches : tree of Value, Node or str, optional
            The outputs of the graph by default. A Node runs and gives None; a name is that of an output or a Value.
        feeds : mapping of Value (or name of an input) to array, optional
            Any Value can be fed; what computes it then does not run.
        threads : int
            Up to so many threads run independent nodes.

        Returns
        -------
        tree of ndarray
            As `fetches`.

        Examples
        --------
        >>> import numpy as np, pyop
        >>> g = pyop.Graph()
        >>> x = g.input("float64[n]")
        >>> y = x + 1.0
        >>> g.run([y, y * y], {x: [1.0, 2.0]})
        [array([2., 3.]), array([4., 9.])]
        >>> g.run("add", {"input": [1.0, 2.0]})
        array([2., 3.])
        """
        if fetches is None:
            self._check_no_writes("compile() it: a plan writes into its arguments")
        leaves, structure = self._fetches(fetches)
        names, arrays = self._feeds({} if feeds is None else feeds)
        key = (tuple(map(_key, leaves)), structure, tuple(map(_key, names)), threads)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._compile(leaves, structure, names, whole=False, threads=threads)
            if len(self._plans) >= _REMEMBERED_PLANS:
                for oldest in [*self._plans][: 1 - _REMEMBERED_PLANS]:  # a copy: other threads add some meanwhile
                    self._plans.pop(oldest, None)
            self._plans[key] = plan
        return plan(*arrays)

    @staticmethod
    def passes() -> dict[str, str]:
        """Return the passes of the compiler, in order: the name of each, and what it does.

        Returns
        -------
        dict of str to str
            Any of the names can be given to ``compile(disable=[...])``.

        Examples
        --------
        >>> import pyop
        >>> list(pyop.Graph.passes())[:3]
        ['prune', 'merge', 'casts']
        """
        return _core.passes()

    if TYPE_CHECKING:  # which `saving`, `pictures` and `machines` give the class

        def save(self, path: Any, *, embed: bool = False) -> None: ...
        def show(self, profile: Any = None) -> None: ...
        def to_dot(self) -> str: ...
        def to_mermaid(self) -> str: ...
        def to_html(self, path: Any, profile: Any = None) -> None: ...
        def partition(self, *, profile: Any = None) -> Any: ...
        def to_dask(self, *, profile: Any = None, **inputs: Any) -> Any: ...
        def submit(self, client: Any, *args: Any, profile: Any = None, stateful: str = "here", **named: Any) -> Any: ...

    def compile(
        self,
        threads: int = 1,
        optimize: bool = True,
        *,
        disable: Iterable[str] = (),
        precision: Literal["exact", "fast"] = "exact",
    ) -> Plan:
        """Compile the whole graph into a callable of its inputs.

        It also runs the stateful nodes that no output needs.

        Parameters
        ----------
        threads : int
            Up to so many threads run independent nodes of one call.
        optimize : bool
            Without it the graph runs as it was written, each node by a call of its function; only what nothing needs
            is left out.
        disable : iterable of str
            Passes to leave out, by name (see `passes`): to find the one that makes a wrong result.
        precision : {"exact", "fast"}
            ``"fast"`` lets exp, log, sin, cos, tan, tanh, power and their like run vectorised, with results up to
            4 units in the last place away from the exact ones; ``"exact"`` gives NumPy's own bits.

        Returns
        -------
        Plan

        Raises
        ------
        GraphError
            The graph has neither outputs nor stateful nodes.

        Examples
        --------
        >>> import numpy as np, pyop
        >>> plan = pyop.trace(lambda x: np.sin(x) + np.sin(x), "float64[n]").compile()
        >>> plan.report()["merged"], plan(np.zeros(2))
        (1, array([0., 0.]))
        """
        if precision not in ("exact", "fast"):
            raise ValueError(f"precision must be 'exact' or 'fast', not {precision!r}")
        if isinstance(disable, str):
            raise TypeError(f"disable takes several names of passes: disable=[{disable!r}]")
        disabled = tuple(disable) if optimize else tuple(name for name in self.passes() if name != "prune")
        if self._outputs is None:
            if not self._writes and not any(node.stateful for node in self.nodes):
                raise GraphError(
                    f"graph {self._name!r} has no outputs and no stateful nodes: declare outputs with g.output(...)"
                )
            leaves, structure = flatten(())
        else:
            leaves, structure = self._output_leaves()
        return self._compile(
            leaves, structure, self.inputs, whole=True, threads=threads, disable=disabled, fast=precision == "fast"
        )

    def _check_no_writes(self, instead: str) -> None:
        """Raise GraphError where the graph writes into its inputs, of which its outputs know nothing."""
        if self._writes:
            name = self.inputs[self._writes[0][0]].name
            raise GraphError(f"graph {self._name!r} writes into its input {name!r}: {instead}")

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
    ) -> Plan:
        form = _SINGLE
        if not structure.is_leaf and (leaves or self._outputs is not None or not whole):
            flat = structure.unflatten(leaves)
            is_flat = type(flat) in (tuple, list) and all(isinstance(part, Value | Node) for part in flat)
            form = (_TUPLE if type(flat) is tuple else _LIST) if is_flat else _TREE
        tree = structure if form == _TREE else None
        inputs = self.inputs if whole else ()
        writes = tuple([(inputs[k], self._value(*place)) for k, place in self._writes]) if whole else ()
        feeds = tuple(feeds)

        def compiled(disable: tuple[str, ...]) -> Plan:
            return _core.compile(self, tuple(leaves), feeds, form, tree, whole, disable, threads, fast, writes)

        plan = compiled(disable)
        if len(leaves) > 1 and plan.report()["merged"]:
            from .merged import merges_copies  # on first use: `import pyop` stays light

            if merges_copies(plan._owners()):
                return compiled((*disable, "merge"))
        return plan

    def _output_leaves(self) -> tuple[list[Any], TreeDef]:
        assert self._outputs is not None
        places, structure = self._outputs
        return [self[node] if output is None else self._value(node, output) for node, output in places], structure

    def _fetches(self, fetches: Any) -> tuple[list[Any], TreeDef]:
        if fetches is None:
            if self._outputs is None:
                raise GraphError(f"graph {self._name!r} has no outputs: say what to fetch, g.run(fetches, feeds)")
            return self._output_leaves()
        leaves, structure = flatten(fetches)
        for k, leaf in enumerate(leaves):
            if issubclass(type(leaf), str):
                from .names import fetched_by_name  # on first use: `import pyop` stays light

                leaves[k] = fetched_by_name(self, leaf)
            elif not isinstance(leaf, Value | Node):
                raise TypeError(
                    f"a fetch must be a Value or a Node of the graph, or a name, got {type(leaf).__name__} {leaf!r:.80}"
                )
        return leaves, structure

    def _feeds(self, feeds: Mapping[Any, Any]) -> tuple[list[Value], list[Any]]:
        if not isinstance(feeds, Mapping):
            raise TypeError(f"feeds must map Values (or names of inputs) to arrays, got {type(feeds).__name__}")
        by_name = {value.name: value for value in self.inputs} if any(type(key) is not Value for key in feeds) else {}
        values = []
        for key in feeds:
            if issubclass(type(key), str):
                if key not in by_name:
                    raise GraphError(f"graph {self._name!r} has no input {key!r}; it has {sorted(by_name)}")
                key = by_name[key]
            if not isinstance(key, Value):
                raise TypeError(
                    f"only a Value, or the name of an input, can be fed, not {type(key).__name__} {key!r:.80}"
                )
            values.append(key)
        if len({_key(value) for value in values}) != len(values):
            raise GraphError("a Value is fed twice")
        return values, list(feeds.values())

    def __repr__(self) -> str:
        return f"<pyop.Graph {self._name!r} of {len(self)} nodes>"

    def __str__(self) -> str:
        from .names import listing  # on first use: `import pyop` stays light

        return listing(self)


def twinned(fn: Any) -> Any:
    """Return the twin of a user's function, where twins are traced (`pyop.tracing.twins`); else the function.

    >>> from pyop.graph.graph import twinned
    >>> twinned(abs)
    <built-in function abs>
    """
    twins = getattr(_core.graph_being_built(), "_twins", None)
    return fn if twins is None else twins.of_callable(fn)


def _key(fetch: Any) -> Any:
    return fetch._key if isinstance(fetch, Value) else fetch


def as_input_spec(spec: Any) -> Spec:
    """Return the spec of an input: text, dtype, `Spec` or an example array; "string" as TensorFlow has it."""
    if spec is None:
        return Spec()
    if isinstance(spec, str) and spec == "string":
        return Spec(np.dtype(object))
    return check_input_spec(Spec.of(spec) if isinstance(spec, np.ndarray | np.generic) else Spec.make(spec))


def check_input_spec(spec: Spec) -> Spec:
    """Return the spec; TypeError if its dtype is a kind, to which inputs of graphs cannot be held."""
    if isinstance(spec.dtype, str) and spec.dtype in KINDS:
        raise TypeError(
            f"{spec}: an input of a graph has one dtype, and {spec.dtype!r} is a kind, for declarations of ops: "
            "write a dtype, such as float64, or _ for any"
        )
    return spec


def _constant_array(value: Any) -> np.ndarray[Any, Any]:
    array = _core.as_array(value)
    if (
        array.dtype.kind == "O" and (rules := _core.own_rules(value)) is not None
    ):  # sparse: NumPy knows no numbers in it
        raise TypeError(rules)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        # NumPy's own string types cut trailing NULs; objects do not.
        objects = np.array(value, dtype=object)
        if any(item[-1:] in ("\0", b"\0") for item in objects.flat):
            return objects
    return array
