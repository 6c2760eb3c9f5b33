"""Make nodes of calls of other libraries, for twins under ``pyop.compile(f, fallback=True)``.

A function, a class, an object of another library, a function of C or of ctypes has a `Foreign` in its place. Called
with a symbolic array among its arguments, also in the closure of a callback, it adds an `OpaqueCall` to the graph;
called without one, it is called at once. Whatever does not go so ends the trace by `RunItself`.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .. import _core
from .._core import Value, graph_being_built
from .._tree import flatten
from ..declare.dims import Dim
from ..declare.spec import Spec
from ..graph import number_operators  # noqa: F401  # what Numbers are computed with
from ..graph.deciding import RunItself
from ..graph.graph import Graph
from ..graph.known import is_known, numbers_of
from ..graph.opaque import Callback, OpaqueCall, rebuilt
from ..graph.symbolic_number import Number, is_number
from .code import codes, instructions
from .libraries import is_installed

__all__ = ["Calls", "Foreign", "foreign", "is_foreign", "opens"]

# Of the standard library what would ask an array for its number.
_OF_NUMBERS = frozenset(("math", "cmath", "statistics"))
_NOT_OTHERS = frozenset(("numpy", "pyop", "builtins")) | (frozenset(sys.stdlib_module_names) - _OF_NUMBERS)
_STORES = frozenset(("STORE_DEREF", "DELETE_DEREF"))
_PLAIN = (
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
    np.dtype,
    np.generic,
    type,
    ModuleType,
    BuiltinFunctionType,
)


def _root(x: Any) -> str:
    module = getattr(x, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def is_foreign(x: Any) -> bool:
    """Return whether calls of an object are those of another library, or of C.

    >>> import math, numpy as np
    >>> from pyop.tracing.foreign import is_foreign
    >>> is_foreign(math.sin), is_foreign(np.sin), is_foreign(lambda x: x), is_foreign(np.vectorize(abs))
    (True, False, False, True)
    """
    kind = type(x)
    if kind is np.vectorize or x is np.vectorize:
        return True
    if kind is np.ufunc or kind is Foreign or isinstance(x, np.ndarray | np.generic | BaseException | ModuleType):
        return False
    root = _root(x)
    if kind is FunctionType:
        return root not in _NOT_OTHERS and is_installed(root)
    if kind is BuiltinFunctionType:
        return isinstance(x.__self__, ModuleType | type(None)) and bool(root) and root not in _NOT_OTHERS
    if kind is MethodType:
        return is_foreign(x.__self__)
    if isinstance(x, type):
        return root not in _NOT_OTHERS and is_installed(root) and not issubclass(x, BaseException | np.generic)
    of = _root(kind)
    if kind.__name__ in ("cython_function_or_method", "fused_cython_function"):
        return root not in _NOT_OTHERS
    if of in ("ctypes", "_ctypes", "cffi", "_cffi_backend"):
        return True
    return any(name not in _NOT_OTHERS and is_installed(name) for name in {of, root})


def opens(root: str) -> bool:
    """Return whether what is in a package is another library's."""
    return root not in _NOT_OTHERS


def foreign(x: Any, twins: Any) -> Any:
    """Return what stands for `x` in twins if it is another library's, else `x`."""
    if type(x) is ModuleType:
        return x
    return Foreign(x, twins) if is_foreign(x) else x


class Foreign:
    """Stand for an object of another library: the same, but for calls with symbolic arrays."""

    __slots__ = ("_pyop_original", "_pyop_twins")
    __array_ufunc__ = None  # a symbolic array leaves its operators to this

    def __init__(self, original: Any, twins: Any) -> None:
        self._pyop_original = original
        self._pyop_twins = twins

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._pyop_original, args, kwargs, self._pyop_twins)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._pyop_original)

    def __getattr__(self, name: str) -> Any:
        return _seen(getattr(self._pyop_original, name), self._pyop_twins)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Foreign.__slots__:
            object.__setattr__(self, name, value)
        else:
            call(setattr, (self._pyop_original, name, value), {}, self._pyop_twins)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(_original(x), self._pyop_original)

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(_original(kind), self._pyop_original)

    def __eq__(self, other: object) -> Any:
        return call(operator.eq, (self._pyop_original, other), {}, self._pyop_twins)

    def __ne__(self, other: object) -> Any:
        return call(operator.ne, (self._pyop_original, other), {}, self._pyop_twins)

    def __hash__(self) -> int:
        return hash(self._pyop_original)

    def __repr__(self) -> str:
        return repr(self._pyop_original)

    def __reduce__(self) -> Any:
        return _itself, (self._pyop_original,)


def _itself(x: Any) -> Any:
    return x


_DONE_BY: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "contains": operator.contains,
    "len": len,
    "iter": iter,
    "next": next,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "str": str,
    "format": format,
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_BOTH = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift")


def _install(name: str, function: Callable[..., Any], backward: bool = False) -> None:
    def method(self: Foreign, *others: Any) -> Any:
        operands = (*others, self._pyop_original) if backward else (self._pyop_original, *others)
        return call(function, operands, {}, self._pyop_twins)

    setattr(Foreign, f"__{'r' if backward else ''}{name}__", method)


for _name, _function in _DONE_BY.items():
    _install(_name, _function)
for _name in _BOTH:
    for _backward in (False, True):
        _install(_name.rstrip("_"), getattr(operator, _name), _backward)


def _original(x: Any) -> Any:
    return x._pyop_original if type(x) is Foreign else x


def _seen(x: Any, twins: Any) -> Any:
    """Return what comes from another library, as twins see it."""
    graph = graph_being_built()
    if not isinstance(graph, Graph) or graph._twins is not twins:
        return x
    if type(x) is tuple:
        return tuple([_seen(item, twins) for item in x])
    return foreign(x, twins)


# --- calls


class Calls:
    """Hold the calls that were learnt from in one call of the compiled function, which may be traced more than once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell  # what is to be warned of
        self._made: list[OpaqueCall] = []
        self._at = 0

    def begin(self) -> None:
        """Begin another trace."""
        self._at = 0

    def next(self) -> OpaqueCall | None:
        """Return the call of an earlier trace that comes next; None after the last."""
        return self._made[self._at] if self._at < len(self._made) else None

    def add(self, call: OpaqueCall) -> None:
        """Note the call that came next."""
        self._made[self._at :] = (
            [call]
            if self.next() is None or self._made[self._at].learnt is not call.learnt
            else [
                call,
                *self._made[self._at + 1 :],
            ]
        )
        self._at += 1


class _Leaves:
    """Hold the leaves of a call: which of them a run gives, and how the arguments are made of all."""

    def __init__(self, args: Any, kwargs: Any, twins: Any) -> None:
        found, self.tree = flatten((args, kwargs))
        self.pattern: list[Any] = []
        self.symbolic: list[Any] = []  # the Values and Numbers
        self.places: list[int] = []
        for x in found:
            self._add(twins.original(_original(x)), twins, 0)

    def _add(self, x: Any, twins: Any, depth: int) -> None:
        if type(x) is Value or is_number(x):
            self.places.append(len(self.pattern))
            self.symbolic.append(x)
        elif type(x) is Dim or type(x).__name__ == "Counter":
            raise RunItself(f"gives another library a number that is not known (at {_core.origin_here()})")
        elif type(x) is FunctionType and self._holds(x, depth):
            held = [*[cell.cell_contents for cell in x.__closure__ or ()], *(x.__defaults__ or ())]
            held += (x.__kwdefaults__ or {}).values()
            for item in held:
                self._add(twins.original(_original(item)), twins, depth + 1)
            x = Callback(x, len(held))
        elif type(x) is functools.partial and any(type(a) is Value for a in (*x.args, *x.keywords.values())):
            raise RunItself(f"gives another library a partial that holds arrays (at {_core.origin_here()})")
        self.pattern.append(x)

    def _holds(self, fn: FunctionType, depth: int) -> bool:
        """Return whether a function holds symbolic arrays, so that it has to be made anew in each run."""
        try:
            held = [*[cell.cell_contents for cell in fn.__closure__ or ()], *(fn.__defaults__ or ())]
        except ValueError:  # an empty cell
            return False
        held += (fn.__kwdefaults__ or {}).values()
        if not any(map(_is_symbolic, held)):
            return False
        stores = any(op.opname in _STORES for code in codes(fn.__code__) for op in instructions(code))
        plain = all(isinstance(_original(x), (*_PLAIN, Value, FunctionType)) or is_number(x) for x in held)
        if stores or not plain or depth > 4:
            raise RunItself(f"gives another library a function that keeps state (at {_core.origin_here()})")
        return True

    def fill(self, given: Sequence[Any]) -> Any:
        """Return the arguments, with what a run gives in them."""
        leaves = [*self.pattern]
        for place, x in zip(self.places, given, strict=True):
            leaves[place] = x
        stack: list[Any] = []
        for x in leaves:
            if type(x) is Callback:
                held = stack[len(stack) - x.held :]
                del stack[len(stack) - x.held :]
                x = x.around(held)
            stack.append(x)
        return self.tree.unflatten(stack)


def _is_symbolic(x: Any) -> bool:
    if type(x) is FunctionType:
        try:
            return any(_is_symbolic(cell.cell_contents) for cell in x.__closure__ or ())
        except ValueError:
            return False
    return type(x) is Value or is_number(x) or (type(x) is tuple and any(map(_is_symbolic, x)))


def call(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], twins: Any) -> Any:
    """Call another library's function, by a node if there are symbolic arrays among its arguments."""
    graph = graph_being_built()
    if not isinstance(graph, Graph) or graph._twins is not twins:
        return fn(*map(_original, args), **{name: _original(x) for name, x in kwargs.items()})
    leaves = _Leaves(args, kwargs, twins)
    if not leaves.symbolic:
        args, kwargs = leaves.fill(())
        return _seen(_outside(lambda: fn(*args, **kwargs)), twins)
    if graph._rolling or graph._deciding is None:
        raise TypeError(f"{fn!r:.80} is called with symbolic arrays")  # the loop is unrolled
    given = [x for x in leaves.symbolic if type(x) is Value]
    if graph._weak is not None and (graph._weak.wrong(graph, given) or graph._weak.returned(given)):
        raise RunItself(f"gives another library what may be a number of Python (at {_core.origin_here()})")
    kinds, inputs = [], []
    for x in leaves.symbolic:
        if type(x) is Value and x._is_scalar is None:
            raise RunItself(f"gives another library what may be a scalar (at {_core.origin_here()})")
        kinds.append(x._kind if is_number(x) else True if x._is_scalar else None)
        inputs.append(x._value if is_number(x) else x)
    sized = not any(type(size) is Dim for x in graph.inputs for size in x.shape or ())
    opaque = OpaqueCall(fn, _core.origin_here(), leaves.fill, tuple(kinds), sized, twins.calls.tell)
    arrays = [graph._deciding.evaluate(x.node.index, x.output_index, True) for x in inputs]
    made: list[Any] = []
    try:
        learnt = _outside(lambda: opaque.learn(arrays, twins.calls.next()))
        twins.calls.add(opaque)
    except Exception as error:
        raise RunItself(f"raised {type(error).__name__}", ()) from error
    if learnt.why or learnt.scalar is None:
        if all(type(x) is Value and is_known(x) for x in leaves.symbolic):
            # An object that is made of constants: the same in every call.
            args, kwargs = leaves.fill([np.array(numbers_of(x)) for x in leaves.symbolic])
            twins.given_away(leaves.symbolic)
            return _seen(_outside(lambda: fn(*args, **kwargs)), twins)
        why = learnt.why or "returns scalars and arrays of no dimension"
        raise RunItself(f"calls {opaque.__name__!r}, which {why} (at {_core.origin_here()})")
    if learnt.results:
        node = graph._add_call(
            fn=opaque,
            inputs=tuple(inputs),
            name=_name_of(opaque),
            specs=learnt.specs(sized),
            stateful=True,
            lends=False,
            scalar=learnt.scalar,
        )
        graph._deciding.know(node.index, tuple(learnt.results))
        made = list(node._results)
    else:
        raise RunItself(f"calls {opaque.__name__!r}, which returns no array (at {_core.origin_here()})")
    handles = []
    rest = iter(made)
    for leaf in learnt.leaves:
        if leaf[0] in ("array", "held", "scalar", "number"):
            handle = next(rest)
            if leaf[0] == "held":
                handle._may_show((), True)
            handles.append(Number(leaf[1], handle, frozenset()) if leaf[0] == "number" else handle)
    return rebuilt(learnt, handles, leaves.symbolic)


def _name_of(opaque: OpaqueCall) -> str:
    name = opaque.__name__
    return name if name.isidentifier() else "call"


def _outside(fn: Callable[[], Any]) -> Any:
    """Call something while no graph is being built on this thread."""
    made: list[Any] = []

    def run() -> Any:
        made.append(fn())
        return np.zeros(())

    beside = Graph()
    with beside:
        node = beside._add_call(fn=run, inputs=(), name="outside", specs=[Spec()], stateful=True, lends=False)
    beside.run(node._results[0])
    return made[0]
