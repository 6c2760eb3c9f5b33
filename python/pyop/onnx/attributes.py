"""Read the attributes of PythonOp and PythonOpGrad without trust, since a file may say anything.

`Forward` and `Backward` hold what a node says, checked. Nothing here runs or imports anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from onnx import AttributeProto, helper

from .callee import read_callee
from .elements import dtype_of, name_of, printable

__all__ = [
    "BACKWARD", "DOMAIN", "FORWARD", "Backward", "Forward", "Port", "node_label", "read_backward", "read_forward",
]  # fmt: skip

DOMAIN = "com.microsoft"
TEXT_AS_BYTES = "pyop.text_as_bytes"  # metadata of nodes of earlier versions: the function takes text as bytes
KEYWORDS = "pyop.keywords"  # metadata of a node: the names of its last arguments, for people and for earlier versions

_INT, _STRING, _FLOATS, _INTS = AttributeProto.INT, AttributeProto.STRING, AttributeProto.FLOATS, AttributeProto.INTS

# Family of constants: the type of its buffer, and what makes a Python object of an item.
_FAMILIES: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "bool": (_INTS, bool),
    "int": (_INTS, int),
    "float": (_FLOATS, float),
}

_COMMON = {
    "name": _STRING,
    "func_name": _STRING,
    "input_tensor_types": _INTS,
    "input_tensor_ranks": _INTS,
    "output_tensor_types": _INTS,
    "output_tensor_ranks": _INTS,
    "tensor_reuse_map": _INTS,
    "safe_run_mode": _INT,
    "comment": _STRING,
    "inplace": _INT,
}
FORWARD = _COMMON | {
    "input_convention": _STRING,
    "input_requires_grads": _INTS,
    "output_tensor_requires_grads": _INTS,
    "input_pointer_scalars": _INTS,
    "input_pointer_scalar_positions": _INTS,
    "bw_tensor_reuse_map": _INTS,
    "training_mode": _INT,
}
for _family, (_kind, _) in _FAMILIES.items():
    FORWARD[f"input_{_family}_scalars"] = _kind
    FORWARD[f"input_{_family}_scalar_positions"] = _INTS
    FORWARD[f"input_{_family}_tuples"] = _kind
    FORWARD[f"input_{_family}_tuple_positions"] = _INTS
    FORWARD[f"input_{_family}_tuple_begins"] = _INTS
BACKWARD = _COMMON | {"output_convention": _STRING, "output_tensor_requires_grads": _INTS}


@dataclass(frozen=True)
class Port:
    """Describe one tensor of a node: element type and rank."""

    code: int
    rank: int

    @property
    def dtype(self) -> Any:
        """Return the dtype; None for text."""
        return dtype_of(self.code)

    def __str__(self) -> str:
        return f"{name_of(self.code)} of rank {self.rank}"


@dataclass(frozen=True)
class Forward:
    """Hold the checked attributes of a PythonOp."""

    label: str
    name: str  # of the function
    # One entry for each argument of the function: the number of a tensor input, or a constant.
    tensor_at: tuple[int | None, ...]
    constants: tuple[Any, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    needs_grad: tuple[bool, ...]
    training: bool
    written: frozenset[int]  # tensor inputs that the function may write into
    reused: tuple[tuple[int, int], ...] = ()  # (output, input): the output must be in the memory of the input
    keywords: tuple[str, ...] | None = None  # of the last arguments; None: not told
    text_as_bytes: bool = False


@dataclass(frozen=True)
class Backward:
    """Hold the checked attributes of a PythonOpGrad."""

    label: str
    name: str
    convention: str  # a letter for each argument of the function: d (tensor) or c (constant)
    required: tuple[bool, ...]
    inputs: tuple[Port, ...]  # of the gradients that come in, without the context
    outputs: tuple[Port, ...]
    # For each output of the node, which entry of what the function returns it is; None: never computed.
    entry_of: tuple[int | None, ...] = ()
    keywords: tuple[str, ...] | None = None
    text_as_bytes: bool = False


def node_label(node: Any) -> str:
    """Return a node in words: ``PythonOp node 'n0'``."""
    kind = f"{printable(node.op_type):.80} node"
    if node.name:
        return f"{kind} {node.name!r:.80}"
    return f"{kind} of output {next(iter(node.output), '')!r:.80}"


class _Reader:
    """Read the attributes of one node by name, and check their types."""

    def __init__(self, node: Any, known: dict[str, int]) -> None:
        self.label = node_label(node)
        self.values: dict[str, Any] = {}
        for attribute in node.attribute:
            name = attribute.name
            if name not in known:
                self.fail(name, f"there is no such attribute; there are {', '.join(sorted(known))}")
            if name in self.values:
                self.fail(name, "is given twice")
            if attribute.ref_attr_name:
                self.fail(name, f"refers to the attribute {attribute.ref_attr_name!r:.80} of a function")
            if attribute.type != known[name]:
                must, kind = map(AttributeProto.AttributeType.Name, (known[name], attribute.type))
                self.fail(name, f"must be {must}, not {kind}")
            self.values[name] = helper.get_attribute_value(attribute)
            if attribute.type == _STRING:
                try:
                    self.values[name] = attribute.s.decode("utf-8")
                except UnicodeDecodeError:
                    self.fail(name, "is not UTF-8 text")

    def fail(self, attribute: str, problem: str) -> NoReturn:
        raise ValueError(f"{self.label}, attribute {attribute!r:.80}: {problem}")

    def has(self, name: str) -> bool:
        return name in self.values

    def require(self, name: str) -> Any:
        if name not in self.values:
            self.fail(name, "is missing")
        return self.values[name]

    def ints(self, name: str) -> list[int]:
        values: list[int] = self.values.get(name, [])
        return values

    def flag(self, name: str) -> bool:
        value = self.values.get(name, 0)
        if value not in (0, 1):
            self.fail(name, f"must be 0 or 1, not {value}")
        return bool(value)

    def function_name(self) -> str:
        if self.has("name") and self.has("func_name"):
            self.fail("name", "is given beside func_name: the node is of two dialects at once")
        name: str = self.values["name"] if self.has("name") else self.require("func_name")
        if not name:
            self.fail("name" if self.has("name") else "func_name", "is empty")
        return name

    def convention(self, name: str) -> str:
        text: str = self.require(name)
        if set(text) - {"c", "d"}:
            self.fail(name, f"{text!r:.80} has letters other than d (tensor) and c (constant)")
        return text

    def ports(self, side: str, count: int, of: str) -> tuple[Port, ...]:
        types = self.require(f"{side}_tensor_types")
        ranks = self.require(f"{side}_tensor_ranks")
        for what, items in (("types", types), ("ranks", ranks)):
            if len(items) != count:
                self.fail(f"{side}_tensor_{what}", f"has {len(items)} entries for {count} {of}")
        for code in types:
            try:
                dtype_of(code)
            except ValueError as error:
                self.fail(f"{side}_tensor_types", str(error))
        for rank in ranks:
            if not 0 <= rank <= 64:
                self.fail(f"{side}_tensor_ranks", f"{rank} is not a rank: from 0 to 64")
        return tuple(map(Port, types, ranks))

    def flags(self, name: str, count: int, of: str) -> tuple[bool, ...]:
        items = self.ints(name)
        if len(items) != count:
            self.fail(name, f"has {len(items)} entries for {count} {of}")
        if set(items) - {0, 1}:
            self.fail(name, f"must be made of 0 and 1, not {items!r:.80}")
        return tuple(map(bool, items))


def read_forward(node: Any, strict: bool = True, pointers: dict[int, Any] | None = None) -> Forward:
    """Return the attributes of a PythonOp node; ValueError that names node and attribute if they are malformed.

    Parameters
    ----------
    node : onnx.NodeProto
    strict : bool
        Letters of the convention that contradict the positions are an error.
    pointers : dict of int to object, optional
        What the integers of the pointer family stand for. They are never taken for addresses.
    """
    reader = _Reader(node, FORWARD)
    if not node.input or not all(node.input):
        raise ValueError(f"{reader.label} must have tensor inputs, all of them given: it has {list(node.input)!r:.200}")
    if len(node.output) < 2:
        raise ValueError(f"{reader.label} must have the context and at least one result as outputs")
    callee = read_callee(reader.function_name())
    convention = reader.convention("input_convention")
    inputs = reader.ports("input", len(node.input), "inputs")
    outputs = reader.ports("output", len(node.output) - 1, "outputs after the context")
    constants = _constants(reader, len(convention), pointers)
    if len(inputs) + len(constants) != len(convention):
        reader.fail(
            "input_convention",
            f"{convention!r:.80} counts {len(convention)} arguments, but there are {len(inputs)} tensors and "
            f"{len(constants)} constants",
        )
    tensors = iter(range(len(inputs)))
    tensor_at = tuple(None if k in constants else next(tensors) for k in range(len(convention)))
    letters = "".join("c" if k in constants else "d" for k in range(len(convention)))
    if strict and letters != convention:
        reader.fail(
            "input_convention",
            f"says {convention!r:.80}, but the positions of the constants say {letters!r:.80}; "
            "strict=False takes the positions",
        )
    needs = (False,) * len(convention)
    if reader.has("input_requires_grads"):
        needs = reader.flags("input_requires_grads", len(convention), "arguments")
    written = _written(reader, "tensor_reuse_map", len(outputs) + 1, len(inputs))
    if reader.flag("inplace"):
        written = frozenset(range(len(inputs)))
    reader.flag("safe_run_mode")
    return Forward(
        label=reader.label,
        name=callee.path,
        tensor_at=tensor_at,
        constants=tuple(constants.get(k) for k in range(len(convention))),
        inputs=inputs,
        outputs=outputs,
        needs_grad=needs,
        training=reader.flag("training_mode"),
        written=written,
        reused=tuple((k - 1, j) for k, j in enumerate(reader.ints("tensor_reuse_map")) if k > 0 and j >= 0),
        keywords=_keywords(reader, node, callee.keywords, len(convention)),
        text_as_bytes=callee.text_as_bytes or any(entry.key == TEXT_AS_BYTES for entry in node.metadata_props),
    )


def _keywords(reader: _Reader, node: Any, told: tuple[str, ...] | None, n_arguments: int) -> tuple[str, ...] | None:
    """Return the names of the last arguments, by the name of the function or else by the metadata of the node."""
    if told is not None:
        if len(set(told)) != len(told) or len(told) > n_arguments:
            attribute = "name" if reader.has("name") else "func_name"
            reader.fail(attribute, f"names {told!r:.80}, which cannot be the last of {n_arguments} arguments")
        return told
    for entry in node.metadata_props:
        if entry.key == KEYWORDS:
            names = tuple(entry.value.split(",")) if entry.value else ()
            if not (all(name.isidentifier() for name in names) and len(set(names)) == len(names) <= n_arguments):
                raise ValueError(
                    f"{node_label(node)}: the metadata {KEYWORDS!r} are no names of arguments: {entry.value!r:.80}"
                )
            return names
    return None


def _written(reader: _Reader, name: str, count: int, inputs: int) -> frozenset[int]:
    """Return the inputs whose memory the results may reuse: the function may write into them."""
    entries = reader.ints(name)
    if reader.has(name) and len(entries) != count:
        reader.fail(name, f"has {len(entries)} entries for {count} outputs")
    for entry in entries:
        if not -1 <= entry < inputs:
            reader.fail(name, f"{entry} is no input of the node, which has {inputs}")
    return frozenset(entry for entry in entries if entry >= 0)


def _constants(reader: _Reader, n_arguments: int, pointers: dict[int, Any] | None) -> dict[int, Any]:
    constants: dict[int, Any] = {}

    def put(attribute: str, position: int, value: Any) -> None:
        if not 0 <= position < n_arguments:
            reader.fail(attribute, f"{position} is not an argument: the convention counts {n_arguments}")
        if position in constants:
            reader.fail(attribute, f"two constants are to be argument {position}")
        constants[position] = value

    objects = pointers or {}
    makers = {family: make for family, (_, make) in _FAMILIES.items()} | {"pointer": objects.get}
    for family, make in makers.items():
        name, places = f"input_{family}_scalars", f"input_{family}_scalar_positions"
        values, positions = reader.ints(name), reader.ints(places)
        _same_length(reader, places, positions, values, name)
        for position, value in zip(positions, values, strict=True):
            if family == "pointer" and value not in objects:
                reader.fail(
                    name,
                    f"argument {position} is the address {value:#x} of an object in the process that wrote the model, "
                    f"which means nothing here; say what it stands for with load(..., pointers={{{value}: object}})",
                )
            put(places, position, make(value))
        for position, items in _tuples(reader, family):
            put(f"input_{family}_tuple_positions", position, tuple(map(make, items)))
    return constants


def _same_length(reader: _Reader, attribute: str, positions: Sequence[Any], values: Sequence[Any], of: str) -> None:
    if len(positions) != len(values):
        reader.fail(attribute, f"has {len(positions)} entries for {len(values)} of {of}")


def _tuples(reader: _Reader, family: str) -> list[tuple[int, list[Any]]]:
    name = f"input_{family}_tuples"
    buffer = reader.ints(name)
    positions, begins = reader.ints(f"input_{family}_tuple_positions"), reader.ints(f"input_{family}_tuple_begins")
    _same_length(reader, f"input_{family}_tuple_begins", begins, positions, f"input_{family}_tuple_positions")
    ends = [*begins[1:], len(buffer)] if begins else []
    if not begins and buffer:
        reader.fail(name, f"has {len(buffer)} items of no tuple")
    if begins and begins[0] != 0:
        reader.fail(f"input_{family}_tuple_begins", f"must begin with 0, not {begins[0]}")
    for begin, end in zip(begins, ends, strict=True):
        if not 0 <= begin <= end <= len(buffer):
            reader.fail(
                f"input_{family}_tuple_begins", f"{begins!r:.80} must grow from 0 to at most {len(buffer)}, the items"
            )
    return [(p, buffer[b:e]) for p, b, e in zip(positions, begins, ends, strict=True)]


def read_backward(node: Any) -> Backward:
    """Return the attributes of a PythonOpGrad node; ValueError that names node and attribute if they are malformed."""
    reader = _Reader(node, BACKWARD)
    if not node.input or not node.input[0]:
        raise ValueError(f"{reader.label} must have the context as its first input")
    if not node.output:
        raise ValueError(f"{reader.label} must have outputs")
    callee = read_callee(reader.function_name())
    convention = reader.convention("output_convention")
    inputs = reader.ports("input", len(node.input) - 1, "inputs after the context")
    outputs = reader.ports("output", len(node.output), "outputs")
    slots = [k for k, letter in enumerate(convention) if letter == "d"]
    required = reader.require("output_tensor_requires_grads")
    flags = reader.flags("output_tensor_requires_grads", len(required), "outputs")
    entries: list[int | None]
    if len(node.output) == len(flags) <= len(slots):
        entries = [k if need else None for k, need in zip(slots, flags, strict=False)]
    elif len(flags) == len(slots) and sum(flags) == len(node.output):
        entries = [k for k, need in zip(slots, flags, strict=True) if need]
    else:
        reader.fail(
            "output_tensor_requires_grads",
            f"has {len(flags)} entries for {len(node.output)} outputs and {len(slots)} tensors in "
            f"output_convention {convention!r:.80}",
        )
    _written(reader, "tensor_reuse_map", len(outputs), len(node.input))
    reader.flag("safe_run_mode")
    return Backward(
        label=reader.label,
        name=callee.path,
        convention=convention,
        required=flags,
        inputs=inputs,
        outputs=outputs,
        entry_of=tuple(entries),
        keywords=callee.keywords,
        text_as_bytes=callee.text_as_bytes,
    )
