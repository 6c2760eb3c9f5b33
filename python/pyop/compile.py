"""`compile`: a NumPy function that traces itself for what it is called with, and then runs as a plan."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pickle import PicklingError
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ._core import CompiledFunction, Plan, Value, graph_being_built, set_static_key
from ._tree import TreeDef, contains, flatten
from .dims import Dim
from .graph import Graph
from .number import Number, Specialise, check_statics, is_number
from .parameters import Parameters, check_name, default_name
from .retrace import History, RetraceWarning
from .sizes import apply
from .spec import Spec
from .spec_tree import make_inputs

__all__ = ["CacheInfo", "CompiledFunction", "RetraceWarning", "compile"]

_Function = Callable[..., Any]


@overload
def compile(
    fn: _Function,
    /,
    *specs: Any,
    static: str | int | Iterable[str | int] = (),
    threads: int = 1,
    optimize: bool = True,
    disable: Iterable[str] = (),
    precision: Literal["exact", "fast"] = "exact",
    max_plans: int = 64,
) -> CompiledFunction: ...
@overload
def compile(
    *specs: Any,
    static: str | int | Iterable[str | int] = (),
    threads: int = 1,
    optimize: bool = True,
    disable: Iterable[str] = (),
    precision: Literal["exact", "fast"] = "exact",
    max_plans: int = 64,
) -> Callable[[_Function], CompiledFunction]: ...
def compile(
    *specs: Any,
    static: str | int | Iterable[str | int] = (),
    threads: int = 1,
    optimize: bool = True,
    disable: Iterable[str] = (),
    precision: Literal["exact", "fast"] = "exact",
    max_plans: int = 64,
) -> Any:
    """Compile a function of arrays: ``pyop.compile(f)``, or as a decorator, ``@pyop.compile``.

    The first call with arrays of some dtypes and shapes traces the function: it is called once with symbolic arrays,
    and what it does to them is compiled into a `Plan`, which runs at once and at every later call of the same kind.
    With specs, one plan serves all sizes.

    Parameters
    ----------
    fn : callable
        Function, method, lambda, partial or any other callable. What it does beside computing arrays (printing,
        changing attributes, reading globals) happens when it is traced, and not again: what changes from call to call
        must be an argument.
    *specs : str or tree of spec, optional
        One for each array argument: ``"float64[n], float64[n]"``, or as `trace` takes them. Every call is checked
        against them.
    static : str, int or iterable of them
        Names or positions of parameters that are no arrays, but decide what the function does: each value has a plan
        of its own. They must be hashable. Keyword-only parameters and ``**kwargs`` are static anyway, and so is what
        can be no array: None, True and False, text.
    threads, optimize, disable, precision
        As `Graph.compile` takes them.
    max_plans : int
        Beyond so many plans, the one that was not used for the longest time is forgotten.

    Returns
    -------
    CompiledFunction
        Called as `fn` is. Also takes ``out=``: an array, or one for each array of the result, to write into.

    Raises
    ------
    TypeError
        An argument that is neither array nor number and not static, or a static one that is not hashable.
    InputError
        An array does not fit its spec.

    Warns
    -----
    RetraceWarning
        The function is traced too often; says which argument varies, and what to do.

    Notes
    -----
    Arguments may be tuples, lists, dicts, named tuples and dataclasses of arrays, nested as you like, and so may the
    result. Results of no dimension are arrays, too, where NumPy makes scalars.

    A Python number is an input of the plan, whatever its value, and weak as in NumPy: a float32 array times 2.0 is
    float32. If the function needs it to go on (``if t > 1``, ``range(n)``, ``math.sin(t)``), there is a plan for each
    value.

    The arguments are never written into: ``x += 1`` makes a new array. What lies between the arrays is done once, when
    the function is traced: random numbers are drawn then, and ``with np.errstate(...)`` belongs around the call.

    Of a method, `self` is static: there are plans for each instance, which they do not keep alive. An attribute that
    is set later is not seen: make it an argument, or call ``clear_cache()``.

    Called with symbolic arrays, or inside ``with graph:``, the function itself runs, and becomes part of that graph. So
    it does when called with subclasses of ndarray, which have rules of their own.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def step(x, v, dt):
    ...     return {"x": x + v * dt, "v": v - x * dt}
    >>> step(np.ones(2), np.zeros(2), 0.5)
    {'x': array([1., 1.]), 'v': array([-0.5, -0.5])}
    >>> norm = pyop.compile(lambda x: np.sqrt(np.sum(x * x)), "float64[n]")
    >>> norm(np.ones(4)), norm(np.ones(9)), norm.cache_info().plans
    (array(2.), array(3.), 1)
    """
    options = _Options(static, threads, optimize, disable, precision, max_plans)
    if specs and callable(specs[0]) and not _is_spec(specs[0]):
        return _compile(specs[0], specs[1:], options)
    return lambda fn: _compile(fn, specs, options)


class CacheInfo(NamedTuple):
    """What a compiled function remembers; as of `functools.lru_cache`."""

    hits: int
    misses: int
    plans: int
    max_plans: int


def _is_spec(x: Any) -> bool:
    return isinstance(x, type) and (issubclass(x, np.generic) or x in (float, int, bool, complex, str, bytes, object))


class _Options:
    """The options of `compile`, checked."""

    def __init__(self, static: Any, threads: Any, optimize: Any, disable: Any, precision: Any, max_plans: Any) -> None:
        self.static: tuple[str | int, ...] = (static,) if isinstance(static, str | int) else tuple(static)
        if isinstance(disable, str):
            raise TypeError(f"disable takes several names of passes: disable=[{disable!r}]")
        if precision not in ("exact", "fast"):
            raise ValueError(f"precision must be 'exact' or 'fast', not {precision!r}")
        if not (isinstance(threads, int) and 1 <= threads <= 1024):
            raise ValueError(f"threads must be between 1 and 1024, not {threads!r}")
        passes = Graph.passes()
        disable = tuple(disable)
        for name in disable:
            if name not in passes:
                raise ValueError(f"there is no pass {name!r}; there are {', '.join(passes)}")
        self.plan: dict[str, Any] = {
            "threads": threads,
            "optimize": bool(optimize),
            "disable": disable,
            "precision": precision,
        }
        self.max_plans = max_plans


def _compile(fn: Any, specs: tuple[Any, ...], options: _Options) -> CompiledFunction:
    if isinstance(fn, CompiledFunction):
        raise TypeError(f"{fn!r} is compiled already; compile the function itself, {fn.__wrapped__!r}")
    if not callable(fn) or isinstance(fn, type):
        hint = "; decorate its methods" if isinstance(fn, type) else ""
        raise TypeError(f"pyop.compile takes a function, got {type(fn).__name__} {fn!r:.80}{hint}")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"{default_name(fn)} is a generator or coroutine function: compile the function it calls")
    tracer = _Tracer(fn, specs, options)
    made = CompiledFunction(
        fn,
        tracer.miss,
        options.max_plans,
        sum(1 << k for k in tracer.static_positions if k < 64),
        tracer.takes_out,
        tracer.specs is not None,
    )
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        if (value := getattr(fn, attribute, None)) is not None:
            setattr(made, attribute, value)
    return made


# --- tracing


class _Place(NamedTuple):
    """One leaf of the arguments of a call."""

    path: str  # as the function would write it: params['w'][0]
    kind: bytes
    value: Any
    key: Any = None
    spec: Spec | None = None


_NUMBERS = (float, int, complex)
_STATIC_TYPES = (type(None), bool, str, bytes, type(Ellipsis), type(NotImplemented))
_INT64 = np.iinfo(np.int64)


class _Tracer:
    """Makes plans for a compiled function. Stateless but for the history of what it was asked for."""

    def __init__(self, fn: _Function, specs: tuple[Any, ...], options: _Options) -> None:
        self.fn = fn
        self.name = default_name(fn)
        self.options = options
        self.history = History(self.name)
        self.parameters = parameters = Parameters.of(fn)
        self.positional = (("self",) if parameters.is_method else ()) + parameters.arrays
        self.keyword_only, self.other_names = _keyword_parameters(fn)
        if "out" in self.keyword_only and parameters.required_statics.count("out") == 0 and _requires_out(fn):
            raise TypeError(
                f"{self.name} has a required parameter `out`: give it the default None. What is compiled is the "
                "function without out=; a compiled function takes out= itself"
            )
        self.takes_out = "out" not in self.positional
        self.static_names, self.static_positions = self._read_static(options.static)
        self.specs: list[tuple[list[Spec], TreeDef]] | None = None
        if specs:
            texts = make_inputs(specs[0] if len(specs) == 1 and isinstance(specs[0], str) else list(specs))
            self.specs = [flatten(spec) for spec in texts]
            self._check_specs()

    def _read_static(self, static: tuple[str | int, ...]) -> tuple[frozenset[str], frozenset[int]]:
        names: set[str] = set()
        positions: set[int] = {0} if self.parameters.is_method else set()
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

    # --- called by the core

    def miss(self, function: Any, args: tuple[Any, ...], n: int, names: Any, out: Any) -> tuple[Any, ...]:
        """A call that fits no guard: ``(result,)``, or ``(plan, kinds, trees, keys, finish)`` for a new guard."""
        positional, keywords = args[:n], dict(zip(names or (), args[n:], strict=True))
        if graph_being_built() is not None or contains((positional, keywords), Value) or _has_numbers(args):
            if out is not None:
                raise TypeError(f"{self.name}: out= needs arrays, and this call is part of a graph")
            return (self.fn(*positional, **keywords),)
        arguments = self._arguments(args, n, names or ())
        foreign = next((p for _, places in arguments for p in places if p.kind == b"?"), None)
        if foreign is not None:
            return (self._call_on_foreign(function, args, n, names or (), out, arguments),)
        specialised: set[int] = set()
        while True:
            try:
                plan, finish, kinds, keys = self._trace(arguments, n, names or (), specialised)
                break
            except Specialise as needed:
                if not needed.places - specialised:
                    raise
                specialised |= needed.places
        places = [place for _, found in arguments for place in found]
        self._count(function, arguments, places, specialised)
        trees = tuple(None if tree.is_leaf else tree for tree, _ in arguments)
        return plan, kinds, trees, keys, finish

    def _arguments(self, args: tuple[Any, ...], n: int, names: Sequence[str]) -> list[tuple[TreeDef, list[_Place]]]:
        """Structure and leaves of every argument."""
        found = []
        for k, value in enumerate(args):
            name = names[k - n] if k >= n else self.positional[k] if k < len(self.positional) else f"args[{k}]"
            position = k if k < n else self.positional.index(name) if name in self.positional else None
            if k == 0 and n > 0 and self.parameters.is_method:
                found.append((_LEAF, [_Place(name, b"i", value)]))
            elif name in self.static_names or (position is None or position in self.static_positions):
                found.append((_LEAF, [self._static(name, value)]))
            elif self.specs is not None:
                found.append(self._declared(name, self._spec_index(position), value))
            else:
                leaves, tree = flatten(value)
                paths = tree.leaf_paths() if not tree.is_leaf else [""]
                found.append(
                    (tree, [self._classify(name + path, leaf) for path, leaf in zip(paths, leaves, strict=True)])
                )
        return found

    def _static(self, path: str, value: Any) -> _Place:
        try:
            hash(value)
            key = _static_key(value)
        except TypeError as error:
            if type(value) is slice:
                return _Place(path, b"s", value, _static_key(value))
            if isinstance(value, np.ndarray):
                hint = "an array is a positional argument, and not in static="
            else:
                hint = "pass a tuple instead of a list, a frozen dataclass, or the numbers themselves"
            raise TypeError(
                f"static argument {path!r} of {self.name} is a {type(value).__name__}, which cannot be hashed "
                f"({error}): {hint}"
            ) from None
        return _Place(path, b"s", value, key if isinstance(value, tuple | frozenset | slice) else None)

    def _spec_index(self, position: int) -> int:
        return position - sum(k < position for k in self.static_positions)

    def _declared(self, name: str, index: int, value: Any) -> tuple[TreeDef, list[_Place]]:
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
            from ._core import InputError

            raise InputError(f"{error}\n  in argument {name!r} of {self.name}") from None
        paths = tree.leaf_paths() if not tree.is_leaf else [""]
        return tree, [
            _Place(name + path, b"d", leaf, spec=spec) for path, leaf, spec in zip(paths, values, specs, strict=True)
        ]

    def _classify(self, path: str, x: Any) -> _Place:
        kind = type(x)
        if kind is np.ndarray:
            return _Place(path, b"a", x, spec=Spec(x.dtype, x.shape))
        if kind in _NUMBERS:
            if kind is int and not _INT64.min <= x <= _INT64.max:
                return _Place(path, b"s", x)
            return _Place(path, b"n", x, spec=Spec(np.dtype(kind), ()))
        if kind in _STATIC_TYPES:
            return _Place(path, b"s", x)
        if isinstance(x, np.number | np.bool_) and kind is not np.timedelta64:
            return _Place(path, b"n", x, spec=Spec(x.dtype, ()))
        if isinstance(x, np.ndarray | np.generic) or _is_array_like(x):
            return _Place(path, b"?", x)
        raise TypeError(
            f"argument {path} of {self.name} is of type {type(x).__name__}, neither array nor number: if it decides "
            f"what the function does, name it in static= ({self._root(path)!r}), or make it a keyword-only parameter"
        )

    def _root(self, path: str) -> str:
        return path.partition("[")[0].partition(".")[0]

    def _call_on_foreign(self, function: Any, args: Any, n: int, names: Sequence[str], out: Any, arguments: Any) -> Any:
        """A call with array-likes: compiled for what they are as arrays, if these say all about them."""
        extra = {} if out is None else {"out": out}
        foreign = [p.value for _, places in arguments for p in places if p.kind == b"?"]
        if any(isinstance(x, np.ndarray) and type(x) is not np.memmap for x in foreign):
            if out is not None:
                raise TypeError(
                    f"{self.name}: out= needs plain arrays, and a subclass of ndarray is among the arguments"
                )
            return self.fn(*args[:n], **dict(zip(names, args[n:], strict=True)))
        converted = [
            tree.unflatten([_as_array(p.value) if p.kind == b"?" else p.value for p in places])
            for tree, places in arguments
        ]
        return function(*converted[:n], **dict(zip(names, converted[n:], strict=True)), **extra)

    # --- one trace

    def _trace(
        self, arguments: list[tuple[TreeDef, list[_Place]]], n: int, names: Sequence[str], specialised: set[int]
    ) -> tuple[Plan, Any, bytes, tuple[Any, ...]]:
        graph = Graph(name=check_name(self.name))
        kinds: list[bytes] = []
        keys: list[Any] = []
        given: list[Any] = []
        try:
            with graph:
                for tree, places in arguments:
                    leaves = []
                    for place in places:
                        number = len(kinds)
                        kind = b"s" if number in specialised else place.kind
                        kinds.append(kind)
                        keys.append(place.key)
                        leaves.append(_stand_in(graph, place, kind, number))
                    given.append(tree.unflatten(leaves))
                result = self.fn(*given[:n], **dict(zip(names, given[n:], strict=True)))
            if any(kind == b"n" for kind in kinds):
                check_statics(graph)
            finish: Any = _declare_outputs(graph, result, self.name)
            plan = graph.compile(**self.options.plan)
            if plan.report()["merged"]:
                apart = _Apart.make(graph.outputs)
                finish = apart if finish is None else _Both(apart, finish) if apart else finish
        except Exception as error:
            note = f"while pyop.compile traced {self.name}({_describe(arguments)})"
            if "no numbers until its graph runs" in str(error):
                note += "; an argument that decides what the function does must be static=, or a Python number"
            error.add_note(note)
            raise
        return plan, finish, b"".join(kinds), tuple(keys)

    # --- warnings

    def _count(self, function: Any, arguments: Any, places: list[_Place], specialised: set[int]) -> None:
        entries = {}
        for k, place in enumerate(places):
            entries[place.path] = _variety(place, k in specialised)
        for tree, found in arguments:
            if not tree.is_leaf:
                entries[self._root(found[0].path) if found else ""] = ("structure", repr(tree))
        hits, misses, _, most = function._counts()
        message = self.history.add(entries, hits + misses + 1, most)
        if message:
            warnings.warn(message, RetraceWarning, stacklevel=4)


_LEAF = flatten(0)[1]


def _keyword_parameters(fn: _Function) -> tuple[tuple[str, ...], bool]:
    """The names of keyword-only parameters, and whether there may be any others."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):
        return (), True
    return (
        tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
    )


def _requires_out(fn: _Function) -> bool:
    parameter = inspect.signature(fn).parameters["out"]
    return parameter.default is parameter.empty


def _has_numbers(tree: Any) -> bool:
    return any(map(is_number, flatten(tree)[0]))


def _is_array_like(x: Any) -> bool:
    if isinstance(x, type):
        return False
    if any(hasattr(x, name) for name in ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")):
        return True
    return isinstance(x, memoryview | bytearray) or type(x).__module__ == "array"


def _as_array(x: Any) -> np.ndarray[Any, Any]:
    return np.from_dlpack(x) if hasattr(x, "__dlpack__") and not hasattr(x, "__array__") else np.asarray(x)


def _stand_in(graph: Graph, place: _Place, kind: bytes, number: int) -> Any:
    """What the function is traced with for a leaf."""
    if kind in (b"s", b"i"):
        return place.value
    value = graph.input(place.spec, name=_input_name(place.path))
    if kind == b"n" and type(place.value) in _NUMBERS:
        return Number(type(place.value), value, frozenset((number,)))
    return value


def _input_name(path: str) -> str:
    """The path with dots: ``params['w'][0]`` is ``params.w.0``."""
    name = "".join(c if c.isalnum() or c == "_" else "." for c in path).replace("..", ".").replace("..", ".")
    try:
        return check_name(name.strip("."))
    except ValueError:
        return "input"


def _describe(arguments: list[tuple[TreeDef, list[_Place]]]) -> str:
    parts = []
    for _, places in arguments:
        for place in places:
            shown = repr(place.value)[:40] if place.spec is None else str(place.spec)
            parts.append(f"{place.path}: {shown}")
    return ", ".join(parts)


def _variety(place: _Place, specialised: bool) -> tuple[str, str]:
    """In what a leaf may differ from call to call: a word for it, and what it was this time."""
    if place.kind == b"i":
        return "instance", f"at {id(place.value):#x}"
    if place.kind == b"s" or specialised:
        return ("number" if specialised else "static"), repr(place.value)[:40]
    assert place.spec is not None
    return ("declared" if place.kind == b"d" else "array"), str(place.spec)


# --- results


class _Finish:
    """Makes what the function returns of the arrays of its plan, where these are not all of it."""

    __slots__ = ("leaves", "structure")

    def __init__(self, leaves: list[tuple[str, Any]], structure: TreeDef) -> None:
        self.leaves = leaves
        self.structure = structure

    def __call__(self, arrays: tuple[Any, ...]) -> Any:
        given = iter(arrays)
        leaves: list[Any] = []
        for kind, value in self.leaves:
            if kind == "array":
                leaves.append(next(given))
            elif kind == "number":
                leaves.append(next(given).item())
            else:
                leaves.append(value.copy() if kind == "copy" else value)
        return self.structure.unflatten(leaves)


# What cannot be changed by whoever gets it.
_ATOMS = (*_STATIC_TYPES, *_NUMBERS, np.generic, np.dtype, type, Enum, range, slice)


def _second(array: Any, number: int) -> int:
    return number


def _declare_outputs(graph: Graph, result: Any, name: str) -> _Finish | None:
    leaves, structure = flatten(result)
    if leaves and all(isinstance(leaf, Value) and leaf.node.kind != "constant" for leaf in leaves):
        graph.output(result)
        return None
    template: list[tuple[str, Any]] = []
    values = []
    for k, leaf in enumerate(leaves):
        if is_number(leaf):
            template.append(("number", None))
            values.append(leaf._value)
        elif isinstance(leaf, Dim):  # a named size is a number when the plan runs
            template.append(("number", None))
            values.append(apply(_second, (graph.inputs[0], leaf), {}, Spec(np.dtype(np.int64), ()), name="size"))
        elif isinstance(leaf, Value) and leaf.node.kind == "constant":
            template.append(("copy", graph.run(leaf)))
        elif isinstance(leaf, Value):
            template.append(("array", None))
            values.append(leaf)
        elif type(leaf) is np.ndarray:  # computed of nothing: the same every time, and the caller's own
            template.append(("copy", leaf.copy()))
        elif isinstance(leaf, _ATOMS):
            template.append(("as it is", leaf))
        else:
            raise TypeError(
                f"{name} returned {'' if structure.is_leaf else structure.leaf_paths()[k] + ', '}an object of type "
                f"{type(leaf).__name__}: what is compiled returns arrays, numbers, text or None, in tuples, lists, "
                "dicts, named tuples and dataclasses"
            )
    graph.output(tuple(values))
    return _Finish(template, structure)


class _Both:
    """One after the other."""

    __slots__ = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def __call__(self, result: Any) -> Any:
        return self.second(self.first(result))


class _Apart:
    """Copies what is one array in the result of a plan, equal nodes being merged, but two in that of the function."""

    __slots__ = ("keys",)

    def __init__(self, keys: list[int]) -> None:
        self.keys = keys

    @classmethod
    def make(cls, result: Any) -> _Apart | None:
        """None for results that have only one array, or the same one more than once."""
        keys = [leaf._key for leaf in flatten(result)[0]]
        return cls(keys) if len(set(keys)) > 1 else None

    def __call__(self, result: Any) -> Any:
        leaves, structure = flatten(result)
        first: dict[int, int] = {}
        shared = False
        for k, (leaf, key) in enumerate(zip(leaves, self.keys, strict=True)):
            if first.setdefault(id(leaf), key) != key:
                leaves[k] = leaf.copy()
                shared = True
        return structure.unflatten(leaves) if shared else result


# --- static values


def _static_key(value: Any) -> Any:
    """Equal for values that no function can tell apart, where ``==`` alone does not say: 1, 1.0, True; 0.0, -0.0."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind is slice:
        return kind, _static_key(value.start), _static_key(value.stop), _static_key(value.step)
    if isinstance(value, tuple):
        return kind, *map(_static_key, value)
    if kind is frozenset:
        return kind, frozenset(map(_static_key, value))
    return kind, value


set_static_key(_static_key, Number)


# --- the type itself comes from the core, without these


def _cache_info(self: CompiledFunction) -> CacheInfo:
    """How often a plan was found, how often one was made, how many there are and may be.

    Returns
    -------
    CacheInfo

    Examples
    --------
    >>> import numpy as np, pyop
    >>> f = pyop.compile(lambda x: x + 1.0)
    >>> _ = f(np.ones(2)), f(np.zeros(2)), f(np.ones(3))
    >>> f.cache_info()
    CacheInfo(hits=1, misses=2, plans=2, max_plans=64)
    """
    return CacheInfo(*self._counts())


def _graph(self: CompiledFunction, *args: Any, **kwargs: Any) -> Graph:
    """The graph that a call with these arguments runs.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import numpy as np, pyop
    >>> f = pyop.compile(lambda x: x + x * 2.0)
    >>> [node.name for node in f.graph(np.ones(3)).nodes]
    ['x', 'multiply', 'add']
    """
    graph: Graph = self.plan_for(*args, **kwargs).graph
    return graph


def _reduce(self: CompiledFunction) -> str:
    """Pickled by import path, as functions are; pickle checks that the path leads back."""
    path: str | None = getattr(self, "__qualname__", None)
    if path is None:
        raise PicklingError(
            f"{self!r} cannot be pickled: compiled functions are pickled by their import path, and "
            f"{self.__wrapped__!r} has none; compile a function of a module"
        )
    return path


def _copy(self: CompiledFunction) -> CompiledFunction:
    return self


def _deepcopy(self: CompiledFunction, memo: Any) -> CompiledFunction:
    return self


_METHODS = {
    "cache_info": _cache_info,
    "graph": _graph,
    "__reduce__": _reduce,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
}
for _attribute, _method in _METHODS.items():
    setattr(CompiledFunction, _attribute, _method)
