"""Python objects of a graph as JSON and back: a closed list of types, and references to what stands in modules.

Reading makes nothing but these types; whatever a name leads to is asked of `pyop.onnx.trust`.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from .._core import CallOnTree, Contract, Op
from .._tree import TreeDef, flatten
from ..declare.abstract import AbstractRule
from ..declare.dims import Dim
from ..declare.marks import Broadcast, Late, Mark, Optional, Variadic
from ..declare.rebuild import CallForOne, CallOnTrees, call_on_tree
from ..declare.references import found_at, op_of_function, op_of_gradient, path_of_op
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..transforms.op_rule import OpGradient
from . import onnx_nodes
from .instances import check_key, make_dataclass, make_named
from .pickles import contract_of_parts
from .trees import has_dataclass, read_steps, write_steps

__all__ = ["Reader", "Writer"]

_MAX_DEPTH = 200
_IN_A_MODULE = "define it in a module, or "


class Writer:
    """Objects to JSON.

    Parameters
    ----------
    embed : dict of str to object, optional
        Functions without an import path are put here, under a name made for them; without it they are an error.
    """

    def __init__(self, embed: dict[str, Any] | None = None) -> None:
        self.embed = embed
        self.functions: dict[str, Any] = {}
        self.node = ""  # whose objects are being written, for error texts
        self.found_in: dict[str, str] = {}  # of what is embedded
        self.homes: list[Any] = []  # models that nodes were read from

    def write(self, x: Any) -> Any:
        """The JSON of an object.

        Raises
        ------
        ValueError
            It is of no type that can be stored.
        """
        if x is None or type(x) in (bool, int, str):
            return x
        kind = type(x)
        if kind is float:
            return {"float": x.hex()}
        if kind is complex:
            return {"complex": [x.real.hex(), x.imag.hex()]}
        if kind is bytes:
            return {"bytes": base64.b85encode(x).decode()}
        if kind is list:
            return [self.write(item) for item in x]
        if kind is tuple or kind is frozenset or kind is set:
            return {kind.__name__: [self.write(item) for item in x]}
        if kind is dict:
            return {"dict": [[self.write(key), self.write(item)] for key, item in x.items()]}
        if kind is slice or kind is range:
            return {kind.__name__: [self.write(part) for part in (x.start, x.stop, x.step)]}
        if x is Ellipsis:
            return {"ellipsis": None}
        if x is np._NoValue:
            return {"novalue": None}
        for known, writer in _WRITERS:
            if issubclass(kind, known):  # a Value says that it is an array
                return writer(self, x)
        return self._by_constructor(x)

    def _by_constructor(self, x: Any) -> Any:
        from .rules import ARGUMENTS

        kind = type(x)
        if isinstance(x, onnx_nodes.CALLS):
            if self.embed is not None:
                self.embed |= {name: fn for name, fn in onnx_nodes.functions_of(x) if found_at(name) is not fn}
            return {"onnx_node": onnx_nodes.write_node(self.homes, x, self.write)}
        if kind in ARGUMENTS:
            return {"made": [kind.__name__, [self.write(getattr(x, name)) for name in ARGUMENTS[kind]]]}
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return {"named": [self.reference(kind), [self.write(item) for item in x]]}
        if dataclasses.is_dataclass(kind):
            # All of them, also those that __init__ computes: reading puts them in their places, and runs nothing.
            items = [[f.name, self.write(getattr(x, f.name))] for f in dataclasses.fields(x) if hasattr(x, f.name)]
            return {"dataclass": [self.reference(kind), items]}
        if callable(x):
            return self.function(x)
        return {"value": self.embedded(x, kind.__qualname__, f"{kind.__name__} {x!r:.80} cannot be stored in a file")}

    def op_path(self, op: Op) -> str:
        """The import path of an op, or the name that it is embedded under."""
        path = path_of_op(op)
        if path is None or self.goes_by_value(path):
            return self.embedded(op, op.name, f"op {op.name!r} cannot be found by an import path", _IN_A_MODULE)
        return path

    def gradient(self, x: OpGradient) -> str:
        """The import path of the op that has gradient rules, or the name that they are embedded under."""
        op = op_of_gradient(x)
        path = None if op is None else path_of_op(op)
        if path is None or self.goes_by_value(path):
            what = f"op {x.name!r} has gradient rules, which go by its import path, and no path leads to it"
            return self.embedded(x, x.name, what, _IN_A_MODULE)
        return path

    def goes_by_value(self, path: str) -> bool:
        """Whether what has this path is embedded all the same: a script's functions are not there for others."""
        return self.embed is not None and (path.startswith("__main__.") or "<" in path)

    def embedded(self, x: Any, name: str, problem: str, hint: str = "") -> str:
        """The name that an object is stored under, by value."""
        if self.embed is None:
            raise ValueError(f"{problem}: {hint}save with embed=True")
        for known, found in self.embed.items():
            if found is x:
                return known
        path = f"{name}#{len(self.embed)}"
        self.embed[path] = x
        self.found_in[path] = self.node
        return path

    def reference(self, x: Any) -> str:
        """The import path of an object."""
        from ..onnx.registry import path_of

        path = path_of(x)
        if path is None or "<" in path or self.goes_by_value(path) or not _is(found_at(path), x):
            name = path or type(x).__qualname__
            path = self.embedded(x, name, f"{x!r:.200} cannot be found by an import path", _IN_A_MODULE)
        self.functions.setdefault(path, x)
        return path

    def function(self, x: Any) -> Any:
        """A callable."""
        if isinstance(x, FunctionType):
            op = op_of_function(x)
            if op is not None and (path := path_of_op(op)) is not None and not self.goes_by_value(path):
                self.functions.setdefault(path, x)
                return {"function": path}
        return {"function": self.reference(x)}


def _is(found: Any, x: Any) -> bool:
    return found is x or (type(found) is BuiltinFunctionType and found == x)


def _array(w: Writer, x: np.ndarray[Any, Any]) -> Any:
    if x.dtype == object:
        return {"objects": [list(x.shape), [w.write(item) for item in x.ravel().tolist()]]}
    if x.dtype == np.dtypes.StringDType():
        return {"strings": [list(x.shape), x.ravel().tolist()]}
    if x.dtype.hasobject or x.dtype.kind == "T":
        raise ValueError(f"an array of {x.dtype} holds objects, and cannot be stored in a file")
    return {"array": [w.write(x.dtype), list(x.shape), base64.b85encode(x.tobytes()).decode()]}


def _dtype(w: Writer, x: np.dtype[Any]) -> Any:
    if x.isbuiltin == 2 and x.kind != "T":
        from ..onnx.elements import code_of

        return {"element": code_of(x)}  # bfloat16 and its like, which NumPy has no text for
    if x == np.dtypes.StringDType():
        return {"dtype": "T"}
    return {"dtype": x.str if x.names is None else x.descr}


def _tree(w: Writer, x: TreeDef) -> Any:
    return write_steps(w, x) if has_dataclass(x) else {"tree": w.write(x.unflatten([_Leaf] * x.num_leaves))}


class _Leaf:
    """Stands for a leaf in a tree that is written down."""


def _type(w: Writer, x: type) -> Any:
    if x is _Leaf:
        return {"leaf": None}
    if x in _TYPES.values():
        return {"type": next(name for name, known in _TYPES.items() if known is x)}
    if issubclass(x, np.generic) and getattr(np, x.__name__, None) is x:
        return {"type": f"numpy.{x.__name__}"}
    return w.function(x)


_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "complex": complex, "str": str, "bytes": bytes}


def _contract(w: Writer, x: Contract) -> Any:
    form, mutates, out_mode, text, abstract = x._parts
    gradient = x.gradient
    if gradient is not None:
        if gradient.saving and x is gradient.saving[1]:
            return {"contract_of_saving": w.gradient(gradient)}
        op = op_of_gradient(gradient)
        if op is not None and op.contract is x:
            return {"contract_of": w.op_path(op)}
    rules = [
        None if abstract is None else [w.write(abstract._rule), abstract._name],
        None if gradient is None else w.gradient(gradient),
    ]
    return {"contract": [w.write(x.signature), form, mutates, out_mode, text, *rules]}


def _spec(w: Writer, x: Spec) -> Any:
    return {"spec": str(x)} if Spec.parse(str(x)) == x else {"spec_of": [w.write(x.dtype), w.write(x.shape)]}


def _signature(w: Writer, x: Signature) -> Any:
    return {"signature": [w.write(part) for part in (x.inputs, x.outputs, x.gufunc, x.like, x.like_inputs)]}


def _mark(w: Writer, x: Any) -> Any:
    return {"mark": [type(x).__name__, w.write(x.name)]}


def _call_on_tree(w: Writer, x: CallOnTree) -> Any:
    leaves = [{"leaf": None} if leaf is CallOnTree.ARRAY else w.write(leaf) for leaf in x.leaves]
    return {"call_on_tree": [w.write(x.fn), w.write(x.tree), leaves]}


def _method(w: Writer, x: MethodType) -> Any:
    if isinstance(x.__self__, OpGradient):
        return {"saving": w.gradient(x.__self__)}
    if isinstance(x.__self__, type) or w.embed is not None:
        return w.function(x)
    raise ValueError(f"{x!r:.200} is a method of an object, which has no import path: save with embed=True")


_WRITERS: tuple[tuple[Any, Callable[[Writer, Any], Any]], ...] = (
    (np.ndarray, _array),
    (np.generic, lambda w, x: {"scalar": _array(w, np.asarray(x))}),
    (np.dtype, _dtype),
    (Spec, _spec),
    (Mark, _mark),
    (Dim, lambda w, x: {"dim": str(x)}),
    (Signature, _signature),
    (TreeDef, _tree),
    (Contract, _contract),
    (CallOnTree, _call_on_tree),
    (CallOnTrees, lambda w, x: {"call_on_trees": [w.write(x.fn), [w.write(tree) for tree in x.trees]]}),
    (CallForOne, lambda w, x: {"call_for_one": w.write(x.fn)}),
    (Op, lambda w, x: {"op": w.op_path(x)}),
    (OpGradient, lambda w, x: {"gradient": w.gradient(x)}),
    (functools.partial, lambda w, x: {"partial": [w.write(x.func), w.write(x.args), w.write(x.keywords)]}),
    (type, _type),
    (MethodType, _method),
)


class Reader:
    """JSON to objects.

    Parameters
    ----------
    resolve : callable
        Gives the object of an import path, or raises: the only way to anything outside this module.
    may_run : callable, optional
        Whether code of a class may be run to make an instance of it.
    """

    def __init__(self, resolve: Callable[[str], Any], may_run: Callable[[type], bool] = lambda kind: False) -> None:
        self.resolve = resolve
        self.may_run = may_run
        self._depth = 0
        self.homes: list[Any] = []  # models that nodes were read from
        self.contracts: dict[str, Contract] = {}  # with rules; equal ones are one, or else no calls would be merged

    def read(self, x: Any) -> Any:
        """The object that `Writer.write` has written.

        Raises
        ------
        ValueError
            It has not.
        """
        if x is None or type(x) in (bool, int, str):
            return x
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise ValueError("objects nest too deep")
            if type(x) is list:
                return [self.read(item) for item in x]
            if type(x) is not dict or len(x) != 1:
                raise ValueError(f"{x!r:.80} describes no object")
            ((kind, content),) = x.items()
            reader = _READERS.get(kind)
            if reader is None:
                raise ValueError(f"there are no objects of kind {kind!r:.80}")
            return reader(self, content)
        finally:
            self._depth -= 1

    def op(self, path: Any) -> Op:
        """The op at an import path."""
        found = self.resolve(path)
        if not isinstance(found, Op):
            raise ValueError(f"{path!r:.200} was an op when the graph was written, and is {type(found).__name__} now")
        return found


def _read_array(r: Reader, x: Any) -> Any:
    dtype, shape, text = x
    kind, data = r.read(dtype), base64.b85decode(text)
    if not isinstance(kind, np.dtype) or kind.hasobject or not kind.itemsize:
        raise ValueError(f"{dtype!r:.80} is no dtype of an array")
    return np.frombuffer(data, kind).reshape([int(size) for size in shape])


def _read_objects(r: Reader, x: Any) -> Any:
    shape, items = x
    array = np.empty(len(items), object)
    array[:] = [r.read(item) for item in items]
    return array.reshape([int(size) for size in shape])


def _read_function(r: Reader, path: Any) -> Any:
    found = r.resolve(path)
    return found.__wrapped__ if isinstance(found, Op) else found


def _read_gradient(r: Reader, path: Any) -> Any:
    found = r.resolve(path)
    if isinstance(found, OpGradient):
        return found
    if not isinstance(found, Op) or found.contract.gradient is None:
        raise ValueError(f"{path!r:.200} had gradient rules when the graph was written, and has none now")
    return found.contract.gradient


def _read_saving(r: Reader, path: Any) -> Any:
    gradient = _read_gradient(r, path)
    if gradient.saving is None:
        raise ValueError(f"the gradient rule of op {path!r:.200} took saved= when the graph was written, and not now")
    return gradient.saving


def _read_made(r: Reader, x: Any) -> Any:
    from .rules import ARGUMENTS

    name, arguments = x
    for kind in ARGUMENTS:
        if kind.__name__ == name:
            return kind(*map(r.read, arguments))
    raise ValueError(f"there are no objects of kind {name!r:.80}")


def _read_type(r: Reader, name: Any) -> type:
    if name in _TYPES:
        return _TYPES[name]
    module, _, rest = str(name).partition(".")
    found = getattr(np, rest, None) if module == "numpy" else None
    if not (isinstance(found, type) and issubclass(found, np.generic)):
        raise ValueError(f"there is no type {name!r:.80}")
    return found


def _read_contract(r: Reader, x: Any) -> Contract:
    signature, form, mutates, out_mode, text, rule, gradient = x
    key = json.dumps(x)
    if key not in r.contracts:
        abstract = None if rule is None else AbstractRule(r.read(rule[0]), str(rule[1]))
        found = None if gradient is None else _read_gradient(r, gradient)
        parts = r.read(signature), form, int(mutates), out_mode, bool(text), abstract, found
        r.contracts[key] = contract_of_parts(*parts)
    return r.contracts[key]


def _read_call_on_tree(r: Reader, x: Any) -> Any:
    fn, tree, leaves = x
    marked = tuple(CallOnTree.ARRAY if leaf == {"leaf": None} else r.read(leaf) for leaf in leaves)
    return call_on_tree(r.read(fn), r.read(tree), marked)


def _read_mark(r: Reader, x: Any) -> Any:
    kind, name = x
    made = {mark.__name__: mark for mark in (Broadcast, Late, Optional, Variadic)}.get(kind)
    if made is None:
        raise ValueError(f"there is no size {kind!r:.80}")
    return made(r.read(name))


def _read_dtype(r: Reader, x: Any) -> np.dtype[Any]:
    def tuples(part: Any) -> Any:
        return tuple(map(tuples, part)) if isinstance(part, list) else part

    return np.dtype(x if isinstance(x, str) else [tuples(field) for field in x])


def _read_element(r: Reader, x: Any) -> Any:
    from ..onnx.elements import dtype_of

    return dtype_of(int(x))


def _read_named(r: Reader, x: Any) -> Any:
    path, items = x
    kind = r.resolve(path)
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{path!r:.80} is no named tuple")
    return make_named(kind, list(map(r.read, items)), str(path))


def _read_dataclass(r: Reader, x: Any) -> Any:
    path, items = x
    kind = r.resolve(path)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"{path!r:.80} is no dataclass")
    return make_dataclass(kind, {str(name): r.read(item) for name, item in items}, str(path), r.may_run)


_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "array": _read_array,
    "bytes": lambda r, x: base64.b85decode(x),
    "call_for_one": lambda r, x: CallForOne(r.read(x)),
    "call_on_tree": _read_call_on_tree,
    "call_on_trees": lambda r, x: CallOnTrees(r.read(x[0]), tuple(map(r.read, x[1]))),
    "complex": lambda r, x: complex(float.fromhex(x[0]), float.fromhex(x[1])),
    "contract": _read_contract,
    "contract_of": lambda r, x: r.op(x).contract,
    "contract_of_saving": lambda r, x: _read_saving(r, x)[1],
    "dataclass": _read_dataclass,
    "dict": lambda r, x: {check_key(r.read(key), r.may_run): r.read(item) for key, item in x},
    "dim": lambda r, x: Spec.parse(f"_[{x}]").shape[0],  # type: ignore[index]
    "dtype": _read_dtype,
    "element": _read_element,
    "ellipsis": lambda r, x: Ellipsis,
    "float": lambda r, x: float.fromhex(x),
    "frozenset": lambda r, x: frozenset(check_key(r.read(item), r.may_run) for item in x),
    "function": _read_function,
    "gradient": _read_gradient,
    "leaf": lambda r, x: _Leaf,
    "made": _read_made,
    "mark": _read_mark,
    "named": _read_named,
    "novalue": lambda r, x: np._NoValue,
    "objects": _read_objects,
    "onnx_node": lambda r, x: onnx_nodes.read_node(r.homes, x, r.read),
    "op": lambda r, x: r.op(x),
    "partial": lambda r, x: functools.partial(r.read(x[0]), *r.read(x[1]), **r.read(x[2])),
    "saving": lambda r, x: _read_saving(r, x)[0],
    "range": lambda r, x: range(*map(r.read, x)),
    "scalar": lambda r, x: r.read(x)[()],
    "set": lambda r, x: {check_key(r.read(item), r.may_run) for item in x},
    "signature": lambda r, x: Signature(*map(r.read, x)),
    "slice": lambda r, x: slice(*map(r.read, x)),
    "spec": lambda r, x: Spec.parse(x),
    "spec_of": lambda r, x: Spec(r.read(x[0]), r.read(x[1])),
    "steps": read_steps,
    "strings": lambda r, x: np.array(list(map(str, x[1])), np.dtypes.StringDType()).reshape(list(map(int, x[0]))),
    "tree": lambda r, x: flatten(r.read(x))[1],
    "tuple": lambda r, x: tuple(map(r.read, x)),
    "type": _read_type,
    "value": lambda r, x: r.resolve(x),
}
