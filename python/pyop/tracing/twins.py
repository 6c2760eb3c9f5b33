"""Make twins: the functions under trace once more, with other functions in place of some of NumPy's and Python's own.

An array that a function makes of no symbolic array (``np.zeros(n)``) is an array like any other, and NumPy asks a Value
for its number when one is written into it. So where a trace comes to that, the function is traced again as its *twin*:
the same code (or code of the same lines, `pyop.tracing.rewritten`), so that tracebacks are the user's, with globals in
which NumPy's functions that make arrays are stand-ins that make Values (`pyop.tracing.made`). Functions of the user's
own code that it reaches, by a global, its closure, a default, a module, a partial or a method, become twins as they are
looked up, or called (`pyop.tracing.callees`). NumPy itself is never changed, and nobody else sees the twins: they live
as long as the trace, on the graph that is being built.

`STAND_INS` has what is replaced, by the id of the original; whoever has a stand-in adds it by `stand_in`. One is called
in twins only, and does what the original does where `graph_under_twins` says that none is traced on this thread: twins
may be called later, by a node that was given one.

Functions that bind globals (``global n; n = ...``) or read them as a dict stay themselves.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import CompiledFunction, Value, graph_being_built
from ..graph.counter import is_counter
from ..graph.deciding import RunItself
from ..graph.graph import Graph
from ..graph.writes import view_of
from ..refusals import refusal
from .called import is_called
from .callees import CALLEE
from .code import codes, facts, instructions
from .libraries import is_installed, is_library
from .names import imported
from .rewritten import rewritten

__all__ = [
    "BUILTINS",
    "CALLED_INSTEAD",
    "OF_KINDS",
    "STAND_INS",
    "StandIn",
    "Twins",
    "called_instead",
    "graph_under_twins",
]
__all__ += ["stand_in"]

STAND_INS: dict[int, tuple[Any, Any]] = {}
"""The original and what stands for it, by the id of the original."""

BUILTINS: dict[str, Any] = {}
"""Names of the code that twins run (`pyop.tracing.rewritten`)."""

# Of functions that see their globals as a dict, or code that runs in them.
_SEES_GLOBALS = frozenset(("globals", "eval", "exec", "__globals__", "vars", "locals"))
_LARGEST = 1 << 20  # elements of an array that a function holds and the graph gets a copy of
_HAS_STAND_INS = frozenset(("math", "numpy", "scipy"))
_STORES = frozenset(("STORE_DEREF", "DELETE_DEREF"))


OF_KINDS: dict[type, Callable[[Any], Any]] = {}
"""Makers of stand-ins for objects of other libraries, by type: ufuncs of SciPy."""

CALLED_INSTEAD: dict[int, tuple[Any, Any]] = {}
"""As `STAND_INS`, of types: they are themselves but where they are called by a name of the module or of NumPy."""


class StandIn:
    """Stand for a function in twins: equal to it, and the same but for what it does when it is called."""

    __slots__ = ("_call", "_original")

    def __init__(self, original: Any, call: Callable[..., Any]) -> None:
        self._original = original
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __eq__(self, other: object) -> bool:
        return other is self._original or other is self

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        return _itself, (self._original,)


def _itself(x: Any) -> Any:
    return x


def stand_in(original: Any, call: Callable[..., Any]) -> None:
    """Have twins call something else in place of a function.

    >>> from pyop.tracing.twins import STAND_INS, stand_in
    >>> stand_in(oct, hex)
    >>> STAND_INS.pop(id(oct))[1](10)
    '0xa'
    """
    STAND_INS[id(original)] = original, StandIn(original, call)


def called_instead(original: type, call: Any) -> None:
    """Have twins call something else where they call a type."""
    CALLED_INSTEAD[id(original)] = original, call


def _read(found: Any, twins: Twins) -> Any:
    """Return what the twin two frames up gets, which has read this by a name."""
    if twins.calls is not None and graph_under_twins() is None:
        return found
    known = CALLED_INSTEAD.get(id(found))
    if known is not None and known[0] is found:
        frame = sys._getframe(2)
        if is_called(frame.f_code, frame.f_lasti):
            return known[1]
    return twins.of(found)


def graph_under_twins() -> Graph | None:
    """Return the graph that twins are building on this thread; None where a function runs plainly."""
    graph = graph_being_built()
    return graph if isinstance(graph, Graph) and graph._twins is not None else None


class Twins:
    """Hold the twins of one trace.

    >>> import numpy as np
    >>> from pyop.tracing.twins import Twins
    >>> twins = Twins()
    >>> def f(n):
    ...     return np.zeros(n)
    >>> f.__module__ = "mine"
    >>> twin = twins.of(f)
    >>> twin is f, twin.__code__ is f.__code__, twin is twins.of(f), twin(2)
    (False, True, True, array([0., 0.]))
    """

    def __init__(self, calls: Any = None, rewrites: bool = True) -> None:
        self._rewrites = rewrites  # for loops and what is called behind attributes
        # With these, other libraries are called by nodes (`pyop.tracing.foreign`).
        self.calls = calls
        self._given_away: list[tuple[Any, Any]] = []
        self._found: dict[int, tuple[Any, Any]] = {}  # by the id of the original, which is kept alive
        self._globals: dict[int, tuple[dict[str, Any], _Globals]] = {}
        self._cells: list[tuple[CellType, Any]] = []
        self._held: list[tuple[np.ndarray[Any, Any], bytes, Any]] = []
        if calls is not None:
            from . import foreign  # on first use

            calls.begin()
            self._foreign, self._opens = foreign.foreign, foreign.opens
        self._builtins = {name: self.of(x) for name, x in vars(builtins).items()}
        self._builtins["__import__"] = self._import
        self._builtins.update(BUILTINS)

    def of(self, x: Any) -> Any:
        """Return what a twin has in place of something that it reads: a twin, a stand-in, or the thing itself."""
        known = STAND_INS.get(id(x)) or self._found.get(id(x))
        if known is not None and known[0] is x:
            return known[1]
        kind = type(x)
        if self.calls is not None and kind is not ModuleType and (there := self._foreign(x, self)) is not x:
            return self._keep(x, there)
        if kind in OF_KINDS:
            return self._keep(x, OF_KINDS[kind](x))
        if kind is FunctionType:
            return self._function(x)
        if kind is MethodType:
            function = self.of(x.__func__)
            return x if function is x.__func__ else MethodType(function, x.__self__)
        if kind is CompiledFunction:  # which calls its function where a graph is built
            return self._keep(x, StandIn(x, self.of_callable(x.__wrapped__)))
        if kind is functools.partial:
            return self._partial(x)
        if kind is ModuleType:
            root = x.__name__.partition(".")[0]
            seen = root in _HAS_STAND_INS or not is_installed(root) or (self.calls is not None and self._opens(root))
            return self._keep(x, _Module(x, self)) if seen else x
        return self._array(x) if kind is np.ndarray else x

    def of_a_library(self, x: Any) -> Any:
        """Return what is called in the place of something of another library, which has a stand-in of its own, too."""
        return x if self.calls is None else self._foreign(x, self)

    def of_callable(self, x: Any) -> Any:
        """Return what a twin calls in place of `x`, which may be an object with a ``__call__`` of the user's."""
        known = CALLED_INSTEAD.get(id(x))
        if known is not None and known[0] is x:
            return known[1]
        twin = self.of(x)
        call = getattr(type(x), "__call__", None)  # noqa: B004  # its function
        if twin is x and type(call) is FunctionType and self.of(call) is not call:
            return MethodType(self.of(call), x)
        return twin

    def check(self) -> None:
        """Refuse what changed something that a twin has read as it was before: a variable of a closure, an array."""
        for cell, before in self._cells:
            if _held(cell) is not before:
                raise refusal(
                    f"a function changed a variable of its closure that another one reads, {before!r:.80} before, "
                    "while arrays that they make were followed: pass it as an argument"
                )
        if any(value._root()._key != key for value, key in self._given_away):
            raise RunItself("writes into an array that another library was given")
        for array, held, _ in self._held:
            if array.tobytes() != held:
                raise refusal(
                    f"the function writes into {array!r:.80}, an array that it holds, while arrays that it makes are "
                    "followed: pass it as an argument, and return what it becomes"
                )

    def _array(self, x: np.ndarray[Any, Any]) -> Any:
        """Return a Value for an array that the function holds, which the graph can index; or the array itself."""
        graph = graph_under_twins()
        if x.dtype.kind not in "biufc" or x.size > _LARGEST or graph is None:
            return x
        held = graph._add_constant(x, "held")
        held._may_show((), True)
        self._held.append((x, x.tobytes(), held))
        return self._keep(x, held)

    def holders(self) -> list[Any]:
        """Return what the twins hold others by."""
        cells = [cell for _, x in self._found.values() if type(x) is FunctionType for cell in x.__closure__ or ()]
        return [*cells, *self._cells, *self._found.values()]

    def given_away(self, values: list[Any]) -> None:
        """Note that another library may keep the memory of these, which may not be written any more."""
        self._given_away += [(value, value._root()._key) for value in values]

    def original(self, x: Any) -> Any:
        """Return the array that the function holds, or the view of one, for the Value that stands for it.

        A Number for an int that a loop has counted; the object of another library for what stands for it; anything
        else as it is.
        """
        if is_counter(x):
            return x.number()
        if self.calls is not None and hasattr(type(x), "_pyop_original"):
            return x._pyop_original
        if type(x) is Value:
            for array, _, value in self._held:
                if value is x:
                    return array
                if value._shares_memory(x) and not x._is_scalar:
                    return view_of(array, x)
        return x

    def _keep(self, x: Any, twin: Any) -> Any:
        self._found[id(x)] = x, twin
        self._found[id(twin)] = twin, twin
        return twin

    def _function(self, fn: FunctionType) -> Any:
        found = facts(fn.__code__)
        if (
            type(fn.__globals__) is _Globals
            or is_library(fn)
            or found.writes_globals
            or not _SEES_GLOBALS.isdisjoint(found.names)
        ):
            return self._keep(fn, fn)
        bound = {
            op.argval for code in codes(fn.__code__) for op in instructions(code) if op.opname in _STORES
        }  # variables that the function shares with others
        cells = [*(fn.__closure__ or ())]
        own = [
            cell if name in bound or _held(cell) is _EMPTY else CellType()
            for name, cell in zip(fn.__code__.co_freevars, cells, strict=True)
        ]
        code = rewritten(fn.__code__, _modules(fn), _objects(fn)) if self._rewrites else fn.__code__
        twin = FunctionType(code, self._globals_of(fn), fn.__name__, None, tuple(own) if own else None)
        self._keep(fn, twin)  # it may be in a cell of its own
        for cell, new in zip(cells, own, strict=True):
            if new is not cell:
                new.cell_contents = self.of(imported(cell.cell_contents))
                self._cells.append((cell, cell.cell_contents))
        twin.__defaults__ = tuple(map(self.of, fn.__defaults__)) if fn.__defaults__ else fn.__defaults__
        twin.__kwdefaults__ = fn.__kwdefaults__ and {name: self.of(x) for name, x in fn.__kwdefaults__.items()}
        twin.__dict__ = fn.__dict__  # the same: what is set there is seen by all
        twin.__module__, twin.__qualname__, twin.__doc__ = fn.__module__, fn.__qualname__, fn.__doc__
        twin.__annotations__ = fn.__annotations__
        return twin

    def _partial(self, x: functools.partial[Any]) -> Any:
        function, arguments = self.of(x.func), [self.of(part) for part in x.args]
        keywords = {name: self.of(part) for name, part in x.keywords.items()}
        return self._keep(x, functools.partial(function, *arguments, **keywords))

    def _globals_of(self, fn: FunctionType) -> _Globals:
        known = self._globals.get(id(fn.__globals__))
        if known is None:
            known = fn.__globals__, _Globals(fn.__globals__, self)
            self._globals[id(fn.__globals__)] = known
            dict.__setitem__(known[1], "__builtins__", self._builtins)
        return known[1]

    def _import(self, *args: Any, **kwargs: Any) -> Any:
        return self.of(builtins.__import__(*args, **kwargs))


def _names(fn: FunctionType) -> set[str]:
    """Return the names that a function and the ones inside it read."""
    return {name for code in codes(fn.__code__) for name in code.co_names}


def _modules(fn: FunctionType) -> frozenset[str]:
    """Return the names, with dots, that are modules in the code of a function."""
    names, known = _names(fn), fn.__globals__
    found: dict[str, Any] = {name: x for name in names if type(x := known.get(name)) is ModuleType}
    for outer, module in list(found.items()):
        inner = {name: vars(module).get(name) for name in names}
        found.update({f"{outer}.{name}": x for name, x in inner.items() if type(x) is ModuleType})
    return frozenset(found)


def _objects(fn: FunctionType) -> frozenset[str]:
    """Return the names of globals that may be called and are no functions."""
    kinds = {name: type(fn.__globals__.get(name)) for name in _names(fn)}
    return frozenset(name for name, kind in kinds.items() if type(getattr(kind, "__call__", None)) is FunctionType)  # noqa: B004


class _Callee:
    __slots__ = ()
    _pyop_computes = True  # it does nothing that an iteration of a loop leaves behind

    def __call__(self, found: Any) -> Any:
        graph = graph_under_twins()
        # A user's own `map` may be given an array first.
        return graph._twins.of_callable(found) if graph is not None and callable(found) else found


BUILTINS[CALLEE] = _Callee()

_EMPTY: Any = object()


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


class _Globals(dict[str, Any]):
    """Hold the globals of a module as twins see them: looked up in the module each time, for they may be bound anew.

    Of a dict that is none exactly, LOAD_GLOBAL calls ``__getitem__``. The items are copies for code that does not, as
    the bodies of classes.
    """

    __slots__ = ("_original", "_twins")

    def __init__(self, original: dict[str, Any], twins: Twins) -> None:
        super().__init__(original)
        self._original = original
        self._twins = twins

    def __getitem__(self, name: str) -> Any:
        found = self._original.get(name, _EMPTY)
        if found is _EMPTY:
            found = vars(builtins).get(name)
            if id(found) not in CALLED_INSTEAD:
                raise KeyError(name)
        return _read(imported(found), self._twins)


class _Module(ModuleType):
    """Stand for a module in twins."""

    def __init__(self, original: ModuleType, twins: Twins) -> None:
        super().__init__(original.__name__)
        object.__setattr__(self, "_pyop_twin", (original, twins))

    def __getattribute__(self, name: str) -> Any:
        original, twins = object.__getattribute__(self, "_pyop_twin")
        return _read(imported(getattr(original, name)), twins)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_pyop_twin")[0], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_pyop_twin")[0], name)

    def __dir__(self) -> list[str]:
        return dir(object.__getattribute__(self, "_pyop_twin")[0])
