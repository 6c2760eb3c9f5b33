"""Register ops and plans as operators of ONNX Runtime, on the memory of its tensors.

``pyop.interop.onnxruntime.register`` needs onnxruntime, the extra ``onnxruntime``. ONNX Runtime calls
`csrc/entry/ort_call.cpp` by its C API.

A registered op is kept as long as the process: nothing tells when the last session that uses it is gone. Sessions may
call from any number of threads.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import threading
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnxruntime

from .. import _core
from .._core import Op, Plan
from .._tree import flatten
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..graph.graph import Graph
from .hooks import Hooks
from .onnxruntime_shapes import shapes_told
from .sizes import Names

__all__ = ["register"]

# The numbers of ONNX's element types.
_CODES = {
    np.dtype(name): code
    for name, code in [
        *(("float32", 1), ("uint8", 2), ("int8", 3), ("uint16", 4), ("int16", 5), ("int32", 6), ("int64", 7)),
        *(("bool", 9), ("float16", 10), ("float64", 11), ("uint32", 12), ("uint64", 13)),
    ]
}
_MOST_OVERLOADS = 144
_lock = threading.Lock()
# What the core has made for ops and plans, which are kept with it, so that their ids are of nothing else.
_registered: dict[Any, tuple[Any, list[Any]]] = {}


def register(
    ops: Op | Plan | Graph | Iterable[Any] | Mapping[str, Any],
    options: onnxruntime.SessionOptions | None = None,
    *,
    domain: str = "pyop",
    copy: bool = False,
) -> onnxruntime.SessionOptions:
    """Register ops, graphs and plans as operators that an InferenceSession calls.

    A node ``domain.name`` takes the flat arrays of the declaration, and has static arguments as attributes. The
    function gets the memory of ONNX Runtime's tensors, read-only; a plan writes its results into such memory.

    Parameters
    ----------
    ops : Op, Plan, Graph, iterable of these, or mapping
        By the names of the operators; an op has its own name otherwise.
    options : onnxruntime.SessionOptions, optional
        For the sessions; new ones by default.
    domain : str
        Of the nodes. One that `options` have no operators of yet.
    copy : bool
        Hand the functions copies, which they may keep. Otherwise a call that keeps an argument is an error, and what it
        has kept must not be looked at.

    Returns
    -------
    onnxruntime.SessionOptions
        `options`. What is registered is kept as long as the process, ops and plans once: more sessions, and more calls
        for the same ones, keep nothing more.

    Raises
    ------
    TypeError
        A declaration leaves a dtype open, has one that is not passed to operators (text, complex numbers, objects), or
        the function writes into its arguments.
    ValueError
        Two operators of one name.

    Notes
    -----
    An exception in a call is an exception of ``InferenceSession.run`` with its type and words, and the session may be
    used again. A KeyboardInterrupt arrives as one. Attributes of ONNX are int64, float32, text and lists of numbers.

    Examples
    --------
    >>> import onnxruntime, pyop  # doctest: +SKIP
    >>> from pyop.interop.onnxruntime import register  # doctest: +SKIP
    >>> @pyop.op("float64[n] -> float64[n]")  # doctest: +SKIP
    ... def double(x):
    ...     return x * 2
    >>> session = onnxruntime.InferenceSession("model.onnx", register(double))  # doctest: +SKIP
    """
    if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 17):
        raise RuntimeError(f"onnxruntime {onnxruntime.__version__} is here, and operators of pyop's need 1.17 or later")
    if isinstance(ops, Op | Plan | Graph):
        ops = [ops]
    named = list(ops.items()) if isinstance(ops, Mapping) else [(_name(each), each) for each in ops]
    twice = {name for name, _ in named if [name for name, _ in named].count(name) > 1}
    if twice:
        raise ValueError(f"several operators have the name {min(twice)!r}: pass a dict of names")
    options = onnxruntime.SessionOptions() if options is None else options
    key = (domain, copy, *[(name, id(each)) for name, each in named])
    with _lock:
        known = _registered.get(key)
    # A graph may have grown since.
    operators = (
        known[0] if known else [(name, *types) for name, each in named for types in _overloads(name, each, copy)]
    )
    with _lock:
        try:
            library = _core._ort_declare(domain, operators, _words)
            if not any(isinstance(each, Graph) for _, each in named):
                _registered.setdefault(key, (library, [each for _, each in named]))
            options.register_custom_ops_library(_core.__file__)
        finally:
            _core._ort_declare(domain, None, None)
    return options


def _name(each: Any) -> str:
    if isinstance(each, Op):
        return str(each.name)
    if isinstance(each, Plan | Graph):
        return str((each.graph if isinstance(each, Plan) else each).name)
    raise TypeError(f"expected an op, a plan or a graph, got {type(each).__name__} {each!r:.80}")


def _words(exception: BaseException) -> str:
    text = "".join(traceback.format_exception_only(exception)).strip()
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()  # as C can have it


def _overloads(name: str, each: Any, copy: bool) -> list[tuple[bytes, bytes, Any, Any]]:
    """Return what an operator is, for all dtypes that it takes.

    An entry has the element types of inputs and outputs, the maker of kernels, and the function that tells shapes.
    """
    if isinstance(each, Graph):
        each = each.compile()
    if isinstance(each, Op):
        target: _OfOp | _OfPlan = _OfOp(Hooks(each), copy)
    elif isinstance(each, Plan):
        target = _OfPlan(each)
    else:
        raise TypeError(f"operator {name!r}: expected an op, a plan or a graph, got {type(each).__name__} {each!r:.80}")
    specs = target.inputs
    if not specs:
        raise TypeError(f"operator {name!r} takes no arrays, and a node of ONNX Runtime has an input at least")
    kinds = list(dict.fromkeys(_variable(k, spec) for k, spec in enumerate(specs)))
    choices = [[kind] if isinstance(kind, np.dtype) else list(_CODES) for kind in kinds]
    if np.prod([len(choice) for choice in choices]) > _MOST_OVERLOADS:
        raise TypeError(f"operator {name!r} leaves the dtypes of more than two inputs open: declare them")
    ranked = [None if target.loops or spec.ndim is None else spec.shape for spec in specs]
    overloads: list[tuple[bytes, bytes, Any, Any]] = []
    problem: Exception | None = None
    for chosen in itertools.product(*choices):
        of = dict(zip(kinds, chosen, strict=True))
        dtypes = [of[_variable(k, spec)] for k, spec in enumerate(specs)]
        try:
            results = target.results(dtypes)
        except (ValueError, TypeError) as error:  # not a dtype that the variable stands for
            problem = error
            continue
        types = (_codes(name, "an input", dtypes), _codes(name, "a result", results))
        overloads.append((*types, target.make, shapes_told(ranked, functools.partial(target.shapes, dtypes))))
    if not overloads:
        raise TypeError(f"operator {name!r} takes no dtypes that ONNX Runtime has") from problem
    # Of an operator of several dtypes ONNX Runtime would ask the first one alone, and for its types, too.
    return overloads if len(overloads) == 1 else [(*each[:3], None) for each in overloads]


def _variable(k: int, spec: Spec) -> Any:
    """Return a dtype, or a key for one: the same for inputs of one dtype."""
    if isinstance(spec.dtype, np.dtype):
        return spec.dtype
    return ("input", k) if spec.dtype is None else ("dtype", spec.dtype)


def _codes(name: str, what: str, dtypes: Iterable[Any]) -> bytes:
    for dtype in dtypes:
        if dtype not in _CODES:
            raise TypeError(
                f"operator {name!r} has {what} of "
                + (f"dtype {dtype}" if dtype is not None else "a dtype that is not declared")
                + f": ONNX Runtime hands over {', '.join(str(known) for known in _CODES)}"
            )
    return bytes(_CODES[dtype] for dtype in dtypes)


class _OfOp:
    """Make the kernels of an op."""

    def __init__(self, hooks: Hooks, copy: bool) -> None:
        self.hooks, self.copy, self.loops = hooks, copy, hooks.gufunc
        self.inputs = [each.spec for each in hooks.inputs]
        written = [each.name for each in hooks.inputs if each.written]
        if written:
            raise TypeError(
                f"op {hooks.name!r} writes into {written[0]!r}, and a tensor of ONNX Runtime may be read by others: "
                "declare an op that returns what it writes"
            )

    def results(self, dtypes: Iterable[Any]) -> list[Any]:
        kinds = [(dtype, spec.shape) for dtype, spec in zip(dtypes, self.inputs, strict=True)]
        return [dtype for dtype, _ in self.hooks.infer(kinds, self.hooks._given({}))]

    def shapes(self, dtypes: Iterable[Any], shapes: Iterable[Any]) -> list[Any]:
        if self.hooks.statics and self.hooks._abstract is not None:
            return []  # a rule that may read attributes
        return [shape for _, shape in self.hooks.infer(list(zip(dtypes, shapes, strict=True)))]

    def make(self, info: int, api: int) -> Any:
        statics = {}
        for name, default in self.hooks.statics.items():
            value = attribute(info, api, name)
            if value is not None:
                statics[name] = value
            elif default is inspect.Parameter.empty:
                raise TypeError(f"op {self.hooks.name!r} needs {name!r}: give the node an attribute of that name")
        call, copy = self.hooks.call, self.copy

        def compute(arrays: tuple[Any, ...], running: int) -> None:
            results = call([np.array(x) for x in arrays] if copy else arrays, statics)
            _put(results, running)

        return compute


class _OfPlan:
    """Make the kernels of a plan, which writes into the outputs itself."""

    def __init__(self, plan: Plan) -> None:
        graph, fetches, feeds = plan._made_of[:3]
        feeds = tuple(graph.inputs) if feeds is None else feeds
        if plan._writes:
            raise TypeError(
                f"a plan of {graph.name!r} writes into its inputs, and a tensor of ONNX Runtime may be read by others"
            )
        self.plan, self.loops = plan, False
        self.inputs = [value.spec for value in feeds]
        self.signature = Signature(tuple(self.inputs), tuple(value.spec for value in fetches))

    def results(self, dtypes: Iterable[Any]) -> list[Any]:
        specs = [Spec(dtype, spec.shape) for dtype, spec in zip(dtypes, self.inputs, strict=True)]
        return [spec.dtype if isinstance(spec.dtype, np.dtype) else None for spec in self.signature.infer(specs)]

    def shapes(self, dtypes: Iterable[Any], shapes: Iterable[Any]) -> list[Any]:
        names = Names(lambda size: size)
        specs = [Spec(dtype, names.of(shape)) for dtype, shape in zip(dtypes, shapes, strict=True)]
        return [names.back(spec.shape) for spec in self.signature.infer(specs)]

    def make(self, info: int, api: int) -> Any:
        plan, signature = self.plan, self.signature
        known: dict[Any, Any] = {}

        def compute(arrays: tuple[Any, ...], running: int) -> None:
            key = tuple([x.shape for x in arrays])
            shapes = known.get(key)
            if shapes is None:
                specs = signature.infer([Spec(x.dtype, x.shape) for x in arrays])
                if any(y.shape is None or not all(isinstance(n, int) for n in y.shape) for y in specs):
                    _put(flatten(plan(*arrays))[0], running)
                    return
                if len(known) > 64:
                    known.clear()
                shapes = known[key] = [(y.dtype, tuple(y.shape or ())) for y in specs]
            plan(*arrays, out=tuple([_core._ort_output(running, k, *each) for k, each in enumerate(shapes)]))

        return compute


def _put(results: Iterable[Any], running: int) -> None:
    for k, y in enumerate(map(np.asarray, results)):
        dtype = y.dtype if y.dtype.isnative else y.dtype.newbyteorder("=")
        np.copyto(_core._ort_output(running, k, dtype, y.shape), y, casting="equiv")


# --- attributes, by the places of ONNX Runtime's functions in its table

_RELEASE_STATUS = 93
_FLOAT, _INT, _TEXT, _FLOATS, _INTS = 85, 86, 87, 162, 163


def attribute(info: int, api: int, name: str) -> Any:
    """Return the value of an attribute of a node; None if it has none of this name."""
    table = ctypes.cast(api, ctypes.POINTER(ctypes.c_void_p))
    pointer = ctypes.c_void_p

    def asked(place: int, *arguments: Any) -> bool:
        function = ctypes.CFUNCTYPE(pointer, pointer, ctypes.c_char_p, pointer, *[pointer] * (len(arguments) - 1))
        status = function(table[place])(info, name.encode(), *map(ctypes.addressof, arguments))
        if status:
            ctypes.CFUNCTYPE(None, pointer)(table[_RELEASE_STATUS])(status)
        return not status

    for place, kind in ((_INT, ctypes.c_int64), (_FLOAT, ctypes.c_float)):
        number = kind()
        if asked(place, number):
            return number.value
    empty = None
    # The lists come last: asked for one of another type, ONNX Runtime finds it empty.
    for place, many in ((_TEXT, ctypes.c_char), (_INTS, ctypes.c_int64), (_FLOATS, ctypes.c_float)):
        size = ctypes.c_size_t(0)
        function = ctypes.CFUNCTYPE(pointer, pointer, ctypes.c_char_p, pointer, pointer)
        status = function(table[place])(info, name.encode(), None, ctypes.addressof(size))
        if status:
            ctypes.CFUNCTYPE(None, pointer)(table[_RELEASE_STATUS])(status)
            continue
        values = (many * max(size.value, 1))()
        if not asked(place, values, size):
            continue
        if place == _TEXT:
            return bytes(values).split(b"\0", 1)[0].decode()
        if size.value:
            return tuple(values[: size.value])
        empty = ()
    return empty
