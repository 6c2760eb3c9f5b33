"""Write Python objects of a graph as JSON and read them: a closed list of types, and references into modules.

`pyop.saving.kinds` has the list. Reading makes only these types; `pyop.onnx.trust` decides on every object that a name
leads to.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from .._core import Contract, Op
from .._tree import TreeDef
from ..declare.abstract import AbstractRule
from ..declare.references import found_at, op_of_function, op_of_gradient, path_of_op
from ..transforms.op_rule import OpGradient
from . import onnx_nodes
from .instances import check_key, make_dataclass
from .kinds import BY_NAME, contract_of_parts, forms_of
from .trees import read_steps, write_steps

__all__ = ["Reader", "Writer"]

_MAX_DEPTH = 200
_IN_A_MODULE = "define it in a module, or "


class Writer:
    """Write objects as JSON.

    Functions without an import path are put into `embed`, under a name made for them; without it they are an error.
    """

    def __init__(self, embed: dict[str, Any] | None = None) -> None:
        self.embed = embed
        self.functions: dict[str, Any] = {}
        self.node = ""  # whose objects are being written, for error texts
        self.found_in: dict[str, str] = {}  # of what is embedded
        self.homes: list[Any] = []  # models that nodes were read from
        self._depth = 0

    def write(self, x: Any) -> Any:
        """Return the JSON of an object; ValueError if it is of no type that can be stored."""
        if x is None or type(x) in (bool, int, str):
            return x
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise ValueError("an object nests too deep to be stored; does a container hold itself?")
            return [self.write(item) for item in x] if type(x) is list else self._of_parts(x)
        finally:
            self._depth -= 1

    def _of_parts(self, x: Any) -> Any:
        form = next(forms_of(x), None)
        if form is None:
            return self._of_no_form(x)
        parts = form.parts(x)
        if form.at is not None:
            return {form.name: self.path(parts)}
        if form.name == "contract":
            *plain, abstract, gradient = parts
            rule = None if abstract is None else [self.write(abstract.rule), abstract._name]
            return {form.name: [*map(self.write, plain), rule, None if gradient is None else self.path(gradient)]}
        return {form.name: self.write(parts)}

    def _of_no_form(self, x: Any) -> Any:
        kind = type(x)
        if isinstance(x, onnx_nodes.CALLS):
            if self.embed is not None:
                self.embed |= {name: fn for name, fn in onnx_nodes.functions_of(x) if found_at(name) is not fn}
            return {"onnx_node": onnx_nodes.write_node(self.homes, x, self.write)}
        if kind is TreeDef:
            return write_steps(self, x)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return {"named": [self.reference(kind), [self.write(item) for item in x]]}
        if dataclasses.is_dataclass(kind):
            # All of them, also those that __init__ computes: reading puts them in their places, and runs nothing.
            items = [[f.name, self.write(getattr(x, f.name))] for f in dataclasses.fields(x) if hasattr(x, f.name)]
            return {"dataclass": [self.reference(kind), items]}
        if isinstance(x, MethodType) and not isinstance(x.__self__, type) and self.embed is None:
            raise ValueError(f"{x!r:.200} is a method of an object, which has no import path: save with embed=True")
        if callable(x):
            return self.function(x)
        return {"value": self.embedded(x, kind.__qualname__, f"{kind.__name__} {x!r:.80} cannot be stored in a file")}

    def path(self, x: Op | OpGradient) -> str:
        """Return the import path of an op, or of the op of gradient rules, or the name that they are embedded under."""
        op = x if isinstance(x, Op) else op_of_gradient(x)
        path = None if op is None else path_of_op(op)
        if path is None or self.goes_by_value(path):
            problem = f"op {x.name!r} cannot be found by an import path"
            if isinstance(x, OpGradient):
                problem = f"op {x.name!r} has gradient rules, which go by its import path, and no path leads to it"
            return self.embedded(x, x.name, problem, _IN_A_MODULE)
        return path

    def goes_by_value(self, path: str) -> bool:
        """Return whether an object of this path is embedded all the same: scripts are missing elsewhere."""
        return self.embed is not None and (path.startswith("__main__.") or "<" in path)

    def embedded(self, x: Any, name: str, problem: str, hint: str = "") -> str:
        """Return the name that an object is stored under, by value; ValueError without `embed`."""
        if self.embed is None:
            raise ValueError(f"{problem}: {hint}save with embed=True")
        for known, stored in self.embed.items():
            if stored is x:
                return known
        path = f"{name}#{len(self.embed)}"
        self.embed[path] = x
        self.found_in[path] = self.node
        return path

    def reference(self, x: Any) -> str:
        """Return the import path of an object."""
        from ..onnx.registry import path_of

        path = path_of(x)
        target = None if path is None else found_at(path)
        same = target is x or (type(target) is BuiltinFunctionType and target == x)
        if path is None or "<" in path or self.goes_by_value(path) or not same:
            name = path or type(x).__qualname__
            path = self.embedded(x, name, f"{x!r:.200} cannot be found by an import path", _IN_A_MODULE)
        self.functions.setdefault(path, x)
        return path

    def function(self, x: Any) -> Any:
        """Return the JSON of a callable."""
        if isinstance(x, FunctionType):
            op = op_of_function(x)
            if op is not None and (path := path_of_op(op)) is not None and not self.goes_by_value(path):
                self.functions.setdefault(path, x)
                return {"function": path}
        return {"function": self.reference(x)}


class Reader:
    """Read objects from JSON.

    `resolve` returns the object of an import path, or raises: the only access to anything outside this module.
    `may_run` tells whether code of a class may run to make an instance of it.
    """

    def __init__(self, resolve: Callable[[str], Any], may_run: Callable[[type], bool] = lambda kind: False) -> None:
        self.resolve = resolve
        self.may_run = may_run
        self._depth = 0
        self.homes: list[Any] = []  # models that nodes were read from
        self.contracts: dict[str, Contract] = {}  # with rules; equal ones are one, or else no calls would be merged

    def read(self, x: Any) -> Any:
        """Return the object that `Writer.write` has written; ValueError for anything else."""
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
            ((name, content),) = x.items()
            return self._object(name, content)
        finally:
            self._depth -= 1

    def _object(self, name: str, content: Any) -> Any:
        if name in _READERS:
            return _READERS[name](self, content)
        form = BY_NAME.get(name)
        if form is None:
            raise ValueError(f"there are no objects of kind {name!r:.80}")
        if form.at is not None:
            return form.made(self.op(content) if form.at is Op else self.gradient(content))
        # Depth counts objects, not the lists of their parts.
        parts = [self.read(part) for part in content] if type(content) is list else self.read(content)
        if name in ("set", "frozenset", "dict"):
            for item in parts:
                check_key(item[0] if name == "dict" else item, self.may_run)
        return form.made(parts)

    def op(self, path: Any) -> Op:
        """Return the op at an import path; ValueError if it is none."""
        target = self.resolve(path)
        if not isinstance(target, Op):
            raise ValueError(f"{path!r:.200} was an op when the graph was written, and is {type(target).__name__} now")
        return target

    def gradient(self, path: Any) -> Any:
        """Return the gradient rules at an import path, those of an op."""
        target = self.resolve(path)
        if isinstance(target, OpGradient):
            return target
        if not isinstance(target, Op) or target.contract.gradient is None:
            raise ValueError(f"{path!r:.200} had gradient rules when the graph was written, and has none now")
        return target.contract.gradient


def _read_contract(r: Reader, x: Any) -> Contract:
    signature, form, mutates, out_mode, text, rule, gradient = x
    key = json.dumps(x)
    if key not in r.contracts:
        abstract = None if rule is None else AbstractRule(r.read(rule[0]), str(rule[1]))
        rules = None if gradient is None else r.gradient(gradient)
        r.contracts[key] = contract_of_parts(
            r.read(signature), form, int(mutates), out_mode, bool(text), abstract, rules
        )
    return r.contracts[key]


def _read_function(r: Reader, path: Any) -> Any:
    target = r.resolve(path)
    return target.__wrapped__ if isinstance(target, Op) else target


def _read_named(r: Reader, x: Any) -> Any:
    path, items = x
    kind = r.resolve(path)
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        raise ValueError(f"{path!r:.80} is no named tuple")
    fields: Any = kind._fields
    if len(items) != len(fields):
        raise ValueError(f"{path!r:.200} had {len(items)} fields when the graph was written, and has {len(fields)} now")
    return tuple.__new__(kind, map(r.read, items))


def _read_dataclass(r: Reader, x: Any) -> Any:
    path, items = x
    kind = r.resolve(path)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise ValueError(f"{path!r:.80} is no dataclass")
    return make_dataclass(kind, {str(name): r.read(item) for name, item in items}, str(path), r.may_run)


# What asks the reader for more than the parts of an object.
_READERS: dict[str, Callable[[Reader, Any], Any]] = {
    "contract": _read_contract,
    "dataclass": _read_dataclass,
    "function": _read_function,
    "named": _read_named,
    "onnx_node": lambda r, x: onnx_nodes.read_node(r.homes, x, r.read),
    "steps": read_steps,
    "value": lambda r, x: r.resolve(x),
}
