"""Sort the arguments of a call, leaf by leaf, and record how later calls are compared with it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import FunctionType, SimpleNamespace
from typing import Any
from weakref import WeakSet

import numpy as np

from .._core import InputError, Tensor, Value, as_array, has_own_rules, own_rules
from .._tree import TreeDef, flatten
from ..declare.parameters import OutMode, Parameters, check_name, default_name
from ..declare.spec import Spec
from ..graph.deciding import OfState
from ..graph.graph import Graph, check_input_spec
from ..graph.symbolic_number import Number, is_number
from ..tracing.type_checks import asks_types_of_numbers
from .statics import is_dtype, is_function, static_key

__all__ = [
    "NUMBERS",
    "PLAIN",
    "STATIC_TYPES",
    "Argument",
    "Arguments",
    "Place",
    "answer_at_once",
    "call_on_arrays",
    "describe",
    "has_stand_ins",
    "input_name",
]
__all__ += ["instead_of", "met_as_memory", "needed_at_once", "repeats", "root", "stand_in", "varieties"]

_Function = Callable[..., Any]


class Place:
    """Hold one leaf of the arguments of a call."""

    # They are read many times, which takes longer of a tuple.
    __slots__ = (
        "key",
        "kind",
        "of_state",
        "path",
        "spec",
        "value",
    )  # which are read many times: of a tuple that takes longer

    def __init__(self, path: str, kind: bytes, value: Any, key: Any = None, spec: Spec | None = None) -> None:
        self.path = path  # as the function would write it: params['w'][0]
        self.kind = kind  # a LeafKind of csrc/plan/guard.h; or ?, what only may become an array
        self.value = value
        self.key = key
        self.spec = spec
        self.of_state = False  # whether an instance or closure holds it


NUMBERS: tuple[type, ...] = (float, int, complex)
STATIC_TYPES: tuple[type, ...] = (type(None), bool, str, bytes, type(Ellipsis), type(NotImplemented))
_TEXTS_AND_DATES = (np.str_, np.bytes_, np.datetime64, np.timedelta64)
_INT64 = np.iinfo(np.int64)

# Of one argument: its structure and its leaves.
Argument = tuple[TreeDef, list[Place]]


class Arguments:
    """Sort the arguments of calls of one function.

    `specs` are as `compile` takes them, none if calls are compared by dtype and shape; `static` has names and positions
    of parameters.
    """

    def __init__(
        self, fn: _Function, specs: tuple[Any, ...], static: tuple[str | int, ...], of_instances: bool = False
    ) -> None:
        self.name = default_name(fn)
        parameters = Parameters.of(fn)
        self.positional = (("self",) if parameters.is_method else ()) + parameters.arrays
        if of_instances:
            parameters = parameters.as_method()
        self.parameters = parameters
        self.instances: Any = None  # Instances, of a function whose first argument may be one
        has_out = parameters.out_mode is not OutMode.NONE
        self.keyword_only = (*parameters.statics, "out") if has_out else parameters.statics
        self.other_names = parameters.any_static
        if parameters.out_mode is OutMode.REQUIRED:
            raise TypeError(
                f"{self.name} has a required parameter `out`: give it the default None. What is compiled is the "
                "function without out=; a compiled function takes out= itself"
            )
        self.takes_out = "out" not in self.positional
        self.static_names, self.static_positions = self._read_static(static)
        self.takes_any = not (specs or self.static_names or self.static_positions or self.keyword_only)
        self.specs: list[tuple[list[Spec], TreeDef]] | None = None
        if specs:
            from ..declare.spec_tree import make_inputs  # as the rest of declarations, not loaded with pyop

            texts = make_inputs(specs[0] if len(specs) == 1 and isinstance(specs[0], str) else list(specs))
            self.specs = [flatten(spec) for spec in texts]
            for leaves, _ in self.specs:
                for leaf in leaves:
                    check_input_spec(leaf)
            self._check_specs()

    def _read_static(self, static: tuple[str | int, ...]) -> tuple[frozenset[str], frozenset[int]]:
        names: set[str] = set()
        positions: set[int] = {0} if self.parameters.is_method else set()
        if not static:
            return frozenset(), frozenset(positions)
        known = ", ".join(map(repr, (*self.positional, *self.keyword_only))) or "none that it tells"
        for entry in static:
            if isinstance(entry, str):
                if entry in self.positional:
                    positions.add(self.positional.index(entry))
                elif entry not in self.keyword_only and not self.other_names:
                    raise ValueError(f"static={entry!r} is not a parameter of {self.name}; it has {known}")
                names.add(entry)
            elif isinstance(entry, int) and not isinstance(entry, bool):
                n = len(self.positional)
                position = entry + n if entry < 0 else entry
                if not 0 <= position < n and not (self.parameters.variadic and position >= 0):
                    raise ValueError(f"static={entry} is not a position of {self.name}, which has {n} ({known})")
                positions.add(position)
                if position < n:
                    names.add(self.positional[position])
            else:
                raise TypeError(f"static= takes names or positions of parameters, got {entry!r:.80}")
        return frozenset(names), frozenset(positions)

    def _check_specs(self) -> None:
        assert self.specs is not None
        arrays = [k for k in range(len(self.positional)) if k not in self.static_positions]
        if len(self.specs) > len(arrays) and not self.parameters.variadic:
            raise TypeError(
                f"{len(self.specs)} specs for {self.name}, which has {len(arrays)} array "
                f"parameter{'s' * (len(arrays) != 1)}: one for each, static parameters left out"
            )

    def read(self, args: tuple[Any, ...], n: int, names: Sequence[str]) -> list[Argument]:
        """Return structure and leaves of every argument; `n` of them are positional, the others have `names`."""
        found = []
        for k, value in enumerate(args):
            name = names[k - n] if k >= n else self.positional[k] if k < len(self.positional) else f"args[{k}]"
            position = k if k < n else self.positional.index(name) if name in self.positional else None
            if k == 0 and n > 0 and self.parameters.is_method:
                found.append((_LEAF, [Place(name, b"i", value)]))
            elif name in self.static_names or (position is None or position in self.static_positions):
                found.append((_LEAF, [self._static(name, value)]))
            elif self.specs is not None:
                found.append(self._declared(name, self._spec_index(position), value))
            elif type(value) is np.ndarray:
                found.append((_LEAF, [self.classify(name, value)]))
            else:
                leaves, tree = flatten(value)
                paths = [""] if tree.is_leaf else tree.leaf_paths()
                beside = () if tree.is_leaf else tree.beside_fields()
                places = [self.classify(name + paths[k], leaf, k in beside) for k, leaf in enumerate(leaves)]
                found.append((tree, places))
        return found

    def _static(self, path: str, value: Any) -> Place:
        try:
            hash(value)
            key = static_key(value)
        except TypeError as error:
            if type(value) is slice:
                return Place(path, b"s", value, static_key(value))
            if isinstance(value, np.ndarray):
                hint = "an array is a positional argument, and not in static="
            else:
                hint = "pass a tuple instead of a list, a frozen dataclass, or the numbers themselves"
            raise TypeError(
                f"static argument {path!r} of {self.name} is a {type(value).__name__}, which cannot be hashed "
                f"({error}): {hint}"
            ) from None
        return Place(path, b"s", value, key if isinstance(value, tuple | frozenset | slice | np.generic) else None)

    def _spec_index(self, position: int) -> int:
        return position - sum(k < position for k in self.static_positions)

    def _declared(self, name: str, index: int, value: Any) -> Argument:
        assert self.specs is not None
        if index >= len(self.specs):
            raise TypeError(
                f"{self.name} is compiled for {len(self.specs)} array argument{'s' * (len(self.specs) != 1)}, and "
                f"{name!r} is not among them: give it a spec, or name it in static="
            )
        specs, tree = self.specs[index]
        try:
            values = tree.flatten_up_to(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{error}\n  in argument {name!r} of {self.name}") from None
        paths = tree.leaf_paths() if not tree.is_leaf else [""]
        return tree, [
            Place(name + path, b"d", leaf, spec=spec) for path, leaf, spec in zip(paths, values, specs, strict=True)
        ]

    def classify(self, path: str, x: Any, beside: bool = False) -> Place:
        """Return the place of a leaf; `beside`: it is a field of its object in which other objects may be, too."""
        kind = type(x)
        if kind is np.ndarray:
            # A plan would give x itself in the order of the machine's bytes, and results without the metadata.
            if not x.dtype.isnative or x.dtype.metadata is not None:
                return Place(path, b"?", x)
            return Place(path, b"a", x, None, _spec(x.dtype, x.shape))
        if kind in NUMBERS:
            if kind is int and not _INT64.min <= x <= _INT64.max:
                return Place(path, b"s", x)
            return Place(path, b"n", x, None, _spec(np.dtype(kind), ()))
        if kind in STATIC_TYPES:
            return Place(path, b"s", x)
        if is_function(x):
            return Place(path, b"i", x)
        if is_dtype(x):
            return Place(path, b"s", x)
        if isinstance(x, np.number | np.bool_) and kind is not np.timedelta64:
            return Place(path, b"n", x, None, _spec(x.dtype, ()))
        if isinstance(x, _TEXTS_AND_DATES):  # which a plan would have as arrays of no dimension
            return Place(path, b"s", x, static_key(x))
        if isinstance(x, np.ndarray | np.generic) or _is_array_like(x) or own_rules(x) is not None:
            return Place(path, b"?", x)
        if beside:
            return Place(path, b"i", x)
        instead = instead_of(x)
        if instead is not None:
            raise TypeError(
                f"argument {path} of {self.name} is a {type(x).__name__}, and arrays are looked for in tuples, lists, "
                f"dicts, named tuples and dataclasses alone: pass {instead}"
            )
        raise TypeError(
            f"argument {path} of {self.name} is of type {type(x).__name__}, neither array nor number: if it decides "
            f"what the function does, name it in static= ({root(path)!r}), or make it a keyword-only parameter"
        )


class Instances:
    """Decide which calls of a function are those of a method of their first argument, an instance of a class of the
    user's: what that holds is constant, and becomes inputs where it differs or changes, as `self` does (`states`).
    """

    def __init__(self, arguments: Arguments, make: Callable[[], Any]) -> None:
        self._arguments = arguments
        self._make = make  # the function, compiled as a method
        self._function: Any = None

    def function(self, args: tuple[Any, ...]) -> Any:
        """Return what a call with these positional arguments goes to; None for any other call."""
        arguments = self._arguments
        if not (args and arguments.takes_any and not arguments.parameters.is_method and self._is_instance(args[0])):
            return None
        self._function = self._function or self._make()
        return self._function

    def _is_instance(self, x: Any) -> bool:
        from ..tracing.libraries import is_library  # on first use

        kind = type(x)
        # What derives from list or dict holds more than attributes.
        own = all(part.__flags__ & _HEAP for part in kind.__mro__[:-1])
        if not own or kind is object or isinstance(x, type) or is_library(kind) or not flatten(x)[1].is_leaf:
            return False
        try:
            self._arguments.classify("", x)
        except TypeError:
            return True
        return False


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_LEAF = flatten(0)[1]
_specs: dict[tuple[int, tuple[int, ...]], Spec] = {}  # of numbers, which the arguments of a function often share
_MOST_SPECS = 256


def _spec(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Spec:
    """Return the `Spec` of a dtype and shape; it is cached for numeric dtypes, which their number identifies."""
    key = (dtype.num, shape)
    found = _specs.get(key)
    if found is None:
        found = Spec(dtype, shape)
        if dtype.isbuiltin == 1 and dtype.kind in "biufc":
            if len(_specs) >= _MOST_SPECS:
                _specs.clear()
            _specs[key] = found
    return found


def _is_array_like(x: Any) -> bool:
    if isinstance(x, type):
        return False
    if any(hasattr(x, name) for name in ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")):
        return True
    # Those of Python's types that hold memory, by their names: most programs import none of these modules.
    return isinstance(x, memoryview | bytearray) or type(x).__module__ == "array" or type(type(x)) is _array_of_ctypes()


def _array_of_ctypes() -> Any:
    return type(getattr(sys.modules.get("_ctypes"), "Array", None))


def instead_of(x: Any) -> str | None:
    """Return what to write instead of a container in which arrays are not looked for; None for any other object.

    Examples
    --------
    >>> from collections import OrderedDict, deque
    >>> from pyop.compiling.arguments import instead_of
    >>> instead_of(OrderedDict()), instead_of(deque()), instead_of({})
    ('dict(x)', 'list(x)', None)
    """
    kind = type(x)
    if kind in (dict, list, tuple) or hasattr(kind, "_fields"):
        return None
    if isinstance(x, Mapping):
        return "dict(x)"
    if isinstance(x, tuple):
        return "tuple(x)"
    if isinstance(x, (AbstractSet, Iterator, list, deque)):
        return "list(x)"
    return "dict(vars(x))" if isinstance(x, SimpleNamespace) else None


def root(path: str) -> str:
    """Return the parameter that the path of a leaf begins with."""
    return path.partition("[")[0].partition(".")[0]


def input_name(path: str) -> str:
    """Return the path as a name with dots: ``params['w'][0]`` is ``params.w.0``."""
    if path.isascii() and path.isidentifier():
        return path
    name = "".join(c if c.isalnum() or c == "_" else "." for c in path).replace("..", ".").replace("..", ".")
    try:
        return check_name(name.strip("."))
    except ValueError:
        return "input"


def repeats(arguments: list[Argument], kinds: list[bytes], keys: list[Any]) -> list[bytes]:
    """Return the kinds of the leaves; set in `keys` which leaf another one repeats, being the same array."""
    first: dict[int, int] = {}
    found = []
    for k, place in enumerate(place for _, places in arguments for place in places):
        is_array = kinds[k] in (b"a", b"d") and type(place.value) is np.ndarray
        at = first.setdefault(id(place.value), k) if is_array else k
        found.append(kinds[k] if at == k else b"r")
        if at != k:
            keys[k] = at
    return found


def describe(arguments: list[Argument]) -> str:
    """Return the arguments of a call as a text, for an error."""
    parts = []
    for _, places in arguments:
        for place in places:
            shown = repr(place.value)[:40] if place.spec is None else str(place.spec)
            parts.append(f"{place.path}: {shown}")
    return ", ".join(parts)


def variety(place: Place, specialised: bool) -> tuple[str, str | Spec]:
    """Return in what a leaf may differ from call to call: a word for it, and what it was this time."""
    if place.kind == b"i":
        return ("function" if is_function(place.value) else "instance"), f"{place.value!r:.30} at {id(place.value):#x}"
    if place.kind == b"s" or specialised:
        return ("number" if specialised else "static"), repr(place.value)[:40]
    assert place.spec is not None
    return ("declared" if place.kind == b"d" else "array"), place.spec


def varieties(arguments: list[Argument], specialised: AbstractSet[int]) -> dict[str, tuple[str, str | Spec]]:
    """Return for each argument and leaf in what it may differ from call to call, and what it was this time."""
    found: dict[str, tuple[str, str | Spec]] = {}
    for k, place in enumerate(place for _, places in arguments for place in places):
        found[place.path] = variety(place, place.kind == b"n" and k in specialised)
    for tree, places in arguments:
        if not tree.is_leaf:
            found[root(places[0].path) if places else ""] = ("structure", repr(tree))
    return found


def stand_in(graph: Graph, place: Place, kind: bytes, number: int) -> Any:
    """Return what the function is traced with in place of a leaf."""
    if kind in (b"s", b"i"):
        twins = graph._twins if is_function(place.value) else None
        return place.value if twins is None else twins.of(place.value)
    assert place.spec is not None
    value = graph._add_input(place.spec, input_name(place.path), kind == b"n")
    if kind == b"n" and type(place.value) in NUMBERS:
        from ..graph import number_operators  # noqa: F401  # on first use: what Numbers are computed with

        return Number(type(place.value), value, frozenset((OfState(number) if place.of_state else number,)))
    return value


def needed_at_once(places: list[Place], functions: list[FunctionType]) -> set[int]:
    """Return the places of Python numbers that a function must be traced with, whatever it does with them."""
    numbers = {k for k, place in enumerate(places) if place.kind == b"n" and type(place.value) in NUMBERS}
    return numbers if numbers and asks_types_of_numbers(functions) else set()


_COMMON = frozenset((np.ndarray, Value, Tensor, float, int, bool, complex, str, type(None), tuple, list, dict))
PLAIN = frozenset((np.ndarray, np.float64, float, int, bool, complex, str, type(None)))


def answer_at_once(
    fn: Any, function: Any, args: Any, n: int, names: Sequence[str], instances: Any = None
) -> tuple[Any] | None:
    """Return the result of a call, in a tuple, where the function itself has to run, whatever else is among the
    arguments, where it is a method of its first argument (`instances`), or where these are arrays of other libraries of
    kinds that were met before; else None.
    """
    others = [k for k, x in enumerate(args) if type(x) not in _COMMON]
    if instances is not None and 0 in others and (method := instances.function(args[:n])) is not None:
        return (method(*args[:n], **dict(zip(names, args[n:], strict=True))),)
    if any(has_own_rules(args[k]) for k in others):
        return (fn(*args[:n], **dict(zip(names, args[n:], strict=True))),)
    if not any(type(args[k]) in met_as_memory for k in others):
        return None
    converted = [as_array(x) if type(x) in met_as_memory else x for x in args]
    return call_on_arrays(fn, function, args, converted, n, names)


def call_on_arrays(
    fn: Any, function: Any, args: Any, converted: Sequence[Any], n: int, names: Sequence[str], **out: Any
) -> tuple[Any]:
    """Return the result of a compiled function, in a tuple, for arrays in the place of its arguments: of the function
    itself where it writes into them, as others keep what is written elsewhere.
    """
    keywords = dict(zip(names, converted[n:], strict=True))
    if not out and any(plan is not None and plan._writes for plan in function._plans_for(*converted[:n], **keywords)):
        return (fn(*args[:n], **dict(zip(names, args[n:], strict=True))),)
    return (function(*converted[:n], **keywords, **out),)


met_as_memory: WeakSet[type] = WeakSet()  # classes of arguments that were arrays and nothing else


def has_stand_ins(tree: Any) -> bool:
    """Return whether there are Numbers, or examples of a batch under `pyop.vmap`: the function itself runs on such."""
    return any(is_number(x) or getattr(type(x), "_pyop_example", False) for x in flatten(tree)[0])
