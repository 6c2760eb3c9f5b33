"""List the types that graphs are made of, with the parts of each.

The list is closed: a new type is added here. `pyop.saving.values` writes the parts as JSON. `pyop.saving.pickles` uses
the parts of those types that pickle and copy cannot handle.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MethodType
from typing import Any

import numpy as np

from .._core import CallOnTree, Contract, Op
from .._tree import TreeDef, flatten
from ..declare.contracts import OutMode, ResultForm, make_contract, new_contract
from ..declare.dims import Dim
from ..declare.marks import Broadcast, Late, Mark, Optional, Variadic
from ..declare.rebuild import CallForOne, CallOnTrees, call_on_tree
from ..declare.references import op_of_gradient
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..gradients.differences import PullBack, PushForward
from ..graph.graph import Graph
from ..graph.in_place import InPlace
from ..graph.symbolic_number import OnNumbers
from ..loops.node import Branch, Loop
from ..transforms.op_calls import Backward, Forward, JacobianOf
from ..transforms.op_rule import OpGradient
from .graphs import branch_of, graph_of, graph_parts, loop_of, loop_parts
from .trees import has_dataclass

__all__ = ["BY_NAME", "PICKLED", "Form", "Leaf", "contract_of_parts", "forms_of", "itself"]


@dataclass(frozen=True)
class Form:
    """Take the objects of a type apart."""

    name: str  # in files and pickles
    of: Any
    parts: Callable[[Any], Any]  # gives the part, or a list of several
    make: Callable[..., Any]  # of the part, or of several
    when: Callable[[Any], bool] = lambda x: (
        True
    )  # whether an object goes this way; else the next form of its type is asked
    subclasses: bool = False  # whether objects of subclasses do too
    at: Any = None  # the type of the part, where it stands in files as the import path that leads to it
    several: bool = False

    def made(self, parts: Any) -> Any:
        """Return the object of these parts."""
        return self.make(*parts) if self.several else self.make(parts)


Several = partial(Form, several=True)


class Leaf:
    """Stand for a leaf in a tree that is taken apart, and for `CallOnTree.ARRAY`, which is known by identity."""


def _comes_back(parts: Callable[[Any], Any], make: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Return whether the text of an object says all of it: not that of a dtype whose fields lie apart."""

    def when(x: Any) -> bool:
        try:
            return bool(make(parts(x)) == x)
        except (TypeError, ValueError):
            return False

    return when


# --- numbers and arrays


def _bounds(x: Any) -> list[Any]:
    return [x.start, x.stop, x.step]


def _complex(real: str, imag: str) -> complex:
    return complex(float.fromhex(real), float.fromhex(imag))


def _items(x: np.ndarray[Any, Any]) -> list[Any]:
    return [list(x.shape), x.ravel().tolist()]


def _bytes(x: np.ndarray[Any, Any]) -> list[Any]:
    return [x.dtype, list(x.shape), base64.b85encode(x.tobytes()).decode()]


def _array(dtype: Any, shape: list[Any], text: str) -> Any:
    if not isinstance(dtype, np.dtype) or dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"{dtype!r:.80} is no dtype of an array")
    return np.frombuffer(base64.b85decode(text), dtype).reshape([int(size) for size in shape])


def _objects(shape: list[Any], items: list[Any]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape([int(size) for size in shape])


def _strings(shape: list[Any], items: list[Any]) -> Any:
    return np.array(list(map(str, items)), _TEXT).reshape(list(map(int, shape)))


_TEXT = np.dtypes.StringDType()


def _code_of(dtype: Any) -> int:
    from ..onnx.elements import code_of

    return code_of(dtype)


def _of_code(code: Any) -> Any:
    from ..onnx.elements import dtype_of

    return dtype_of(int(code))


def _lists(x: Any) -> Any:
    return list(map(_lists, x)) if isinstance(x, tuple | list) else x


def _fields(x: np.dtype[Any]) -> Any:
    return "T" if x == _TEXT else x.str if x.names is None else _lists(x.descr)


def _dtype(fields: Any) -> np.dtype[Any]:
    if isinstance(fields, str):
        return np.dtype(fields)
    tuples = [(name, _dtype(kind), *map(tuple, shape)) for name, kind, *shape in fields]
    return np.dtype([(tuple(name) if isinstance(name, list) else name, *rest) for name, *rest in tuples])


# --- types


_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, complex, str, bytes)}
_TYPES |= {
    f"numpy.{name}": kind
    for name, kind in vars(np).items()
    if isinstance(kind, type) and issubclass(kind, np.generic) and kind.__name__ == name
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


# --- declarations


def _mark(kind: str, name: str) -> Mark:
    made = {mark.__name__: mark for mark in (Broadcast, Late, Optional, Variadic)}.get(kind)
    if made is None:
        raise ValueError(f"there is no size {kind!r:.80}")
    return made(name)


def _dim(text: Any) -> Any:
    return Spec.parse(f"_[{text}]").shape[0]  # type: ignore[index]


def contract_of_parts(
    signature: Any, form: int, mutates: int, out_mode: int, text: bool, abstract: Any, gradient: Any
) -> Contract:
    """Return the contract of these parts; equal ones without rules are one."""
    if abstract is not None or gradient is not None:
        return new_contract(signature, abstract, ResultForm(form), mutates, OutMode(out_mode), text, gradient)
    return make_contract(
        signature, form=ResultForm(form), mutates=mutates, out_mode=OutMode(out_mode), text_as_utf8=text
    )


def _signature_parts(x: Signature) -> list[Any]:
    """Return the parts; only the first five without cast= and device=, as in files from before these."""
    parts = [x.inputs, x.outputs, x.gufunc, x.like, x.like_inputs]
    return parts if (x.cast, x.device) == ("no", None) else [*parts, x.cast, x.device]


def _is_saving(x: Contract) -> bool:
    """Return whether a contract is that of an op's function with its residuals."""
    return bool(x.gradient is not None and x.gradient.saving and x is x.gradient.saving[1])


def _op_of(x: Contract) -> Op | None:
    """Return the op that has this contract, with rules, or None."""
    op = None if x.gradient is None else op_of_gradient(x.gradient)
    return op if op is not None and op.contract is x else None


def _saving(gradient: OpGradient) -> Any:
    if gradient.saving is None:
        raise ValueError(
            f"the gradient rule of op {gradient.name!r:.200} took saved= when the graph was written, and not now"
        )
    return gradient.saving


# --- trees and callables


def itself(x: Any) -> Any:
    return x


def _tree_parts(x: CallOnTree) -> list[Any]:
    return [x.fn, x.tree, [Leaf if leaf is CallOnTree.ARRAY else leaf for leaf in x.leaves]]


def _tree_call(fn: Any, tree: Any, leaves: Any) -> CallOnTree:
    return call_on_tree(fn, tree, tuple(CallOnTree.ARRAY if leaf is Leaf else leaf for leaf in leaves))


# Callables that derivatives put into graphs: the attributes that are the arguments of the constructor, in order.
_ARGUMENTS: dict[Any, tuple[str, ...]] = {
    Backward: ("gradient", "argnums", "n_out", "n_in", "statics"),
    Forward: ("gradient", "n_in", "statics"),
    InPlace: ("method",),
    JacobianOf: ("gradient", "fn", "statics"),
    OnNumbers: ("fn", "numbers"),
    PullBack: ("fn", "name", "in_trees", "how", "argnums", "n_out", "statics"),
    PushForward: ("fn", "name", "in_trees", "how", "statics"),
}


def _made_parts(x: Any) -> list[Any]:
    return [type(x).__name__, [getattr(x, name) for name in _ARGUMENTS[type(x)]]]


def _made(name: str, arguments: list[Any]) -> Any:
    for kind in _ARGUMENTS:
        if kind.__name__ == name:
            return kind(*arguments)
    raise ValueError(f"there are no objects of kind {name!r:.80}")


FORMS = (
    Form("float", float, float.hex, float.fromhex),
    Several("complex", complex, lambda x: [x.real.hex(), x.imag.hex()], _complex),
    Form("bytes", bytes, lambda x: base64.b85encode(x).decode(), base64.b85decode),
    Form("tuple", tuple, list, tuple),
    Form("set", set, list, set),
    Form("frozenset", frozenset, list, frozenset),
    Form("dict", dict, lambda x: list(map(list, x.items())), dict),
    Several("slice", slice, _bounds, slice),
    Several("range", range, _bounds, range),
    Form("ellipsis", type(Ellipsis), lambda x: None, lambda _: Ellipsis),
    Form("novalue", type(np._NoValue), lambda x: None, lambda _: np._NoValue),
    Several("objects", np.ndarray, _items, _objects, lambda x: x.dtype == object),
    Several("strings", np.ndarray, _items, _strings, lambda x: x.dtype == _TEXT),
    Several("array", np.ndarray, _bytes, _array, lambda x: not x.dtype.hasobject and x.dtype.kind != "T"),
    Form("scalar", np.generic, np.asarray, lambda x: x[()], subclasses=True),
    # bfloat16 and its like, which NumPy has no text for
    Form("element", np.dtype, _code_of, _of_code, lambda x: x.isbuiltin == 2 and x.kind != "T", subclasses=True),
    Form("dtype", np.dtype, _fields, _dtype, _comes_back(_fields, _dtype), subclasses=True),
    Form("leaf", type, lambda x: None, lambda _: Leaf, lambda x: x is Leaf, subclasses=True),
    Form("type", type, _NAMES.__getitem__, _TYPES.__getitem__, _NAMES.__contains__, subclasses=True),
    Form("spec", Spec, str, Spec.parse, _comes_back(str, Spec.parse)),
    Several("spec_of", Spec, lambda x: [x.dtype, x.shape], Spec),
    Several("mark", Mark, lambda x: [type(x).__name__, x.name], _mark, subclasses=True),
    Form("dim", Dim, str, _dim),
    Several("signature", Signature, _signature_parts, Signature),
    Form(
        "tree",
        TreeDef,
        lambda x: x.unflatten([Leaf] * x.num_leaves),
        lambda tree: flatten(tree)[1],
        lambda x: not has_dataclass(x),
    ),
    Form("op", Op, itself, itself, at=Op),
    Form("gradient", OpGradient, itself, itself, at=OpGradient),
    Form("contract_of_saving", Contract, lambda x: x.gradient, lambda x: _saving(x)[1], _is_saving, at=OpGradient),
    Form("contract_of", Contract, _op_of, lambda op: op.contract, lambda x: _op_of(x) is not None, at=Op),
    Several("contract", Contract, lambda x: [x.signature, *x._parts, x.gradient], contract_of_parts),
    Several("call_on_tree", CallOnTree, _tree_parts, _tree_call),
    Several(
        "call_on_trees", CallOnTrees, lambda x: [x.fn, list(x.trees)], lambda f, trees: CallOnTrees(f, tuple(trees))
    ),
    Form("call_for_one", CallForOne, lambda x: x.fn, CallForOne),
    *(Several("made", kind, _made_parts, _made) for kind in _ARGUMENTS),
    Form(
        "saving",
        MethodType,
        lambda x: x.__self__,
        lambda x: _saving(x)[0],
        lambda x: isinstance(x.__self__, OpGradient),
        at=OpGradient,
    ),
    Several("graph", Graph, graph_parts, graph_of),
    Several("loop", Loop, loop_parts, loop_of),
    Several("branch", Branch, lambda x: [x.yes, x.no], branch_of),
    Several("partial", partial, lambda x: [x.func, x.args, x.keywords], lambda f, x, named: partial(f, *x, **named)),
)
BY_NAME = {form.name: form for form in FORMS}
# Those of which pickle knows nothing, or too little: what a script has defined goes by value, functions of ops as ops.
PICKLED = (CallForOne, CallOnTree, CallOnTrees, Contract, *_ARGUMENTS)


def forms_of(x: Any) -> Iterator[Form]:
    """Iterate over the forms that an object may go by: the first counts."""
    kind: Any = type(x)  # not what it says of itself: a Value says that it is an array
    return (form for form in _forms_of(kind) if form.when(x))


@lru_cache(maxsize=256)
def _forms_of(kind: Any) -> tuple[Form, ...]:
    return tuple(form for form in FORMS if kind is form.of or (form.subclasses and issubclass(kind, form.of)))
