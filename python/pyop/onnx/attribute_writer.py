"""Write the attributes of PythonOp and PythonOpGrad, in each dialect as far as it has words."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from .attributes import BACKWARD, DOMAIN, FORWARD, Backward, Forward, node_label, read_backward, read_forward
from .callee import Callee, write_callee

__all__ = ["backward_attributes", "forward_attributes", "set_attributes", "speak", "why_no_constant"]

_INT64 = range(-(2**63), 2**63)


def forward_attributes(declared: Forward, dialect: str) -> dict[str, Any]:
    """Return the attributes of a PythonOp; a ValueError names the argument if the dialect cannot say it."""
    attributes = _name_and_ports(declared, dialect) | {
        "input_convention": "".join("c" if at is None else "d" for at in declared.tensor_at),
        "input_requires_grads": list(map(int, declared.needs_grad)),
        "training_mode": int(declared.training),
    }
    for k, (at, value) in enumerate(zip(declared.tensor_at, declared.constants, strict=True)):
        if at is None:
            problem = why_no_constant(f"argument {k}", value, dialect)
            if problem is not None:
                raise ValueError(problem)
            _add_constant(attributes, k, value)
    if declared.written and dialect == "name":
        attributes["inplace"] = 1
    elif declared.written:
        places = dict(declared.reused)
        if not declared.written <= set(places.values()):
            raise ValueError(
                "it writes into its arguments, which the dialect 'func_name' can say of a result in their memory only; "
                "the dialect 'name' can say it"
            )
        attributes["tensor_reuse_map"] = [-1, *(places.get(k, -1) for k in range(len(declared.outputs)))]
    return attributes


def backward_attributes(declared: Backward, dialect: str) -> dict[str, Any]:
    """Return the attributes of a PythonOpGrad."""
    return _name_and_ports(declared, dialect) | {
        "output_convention": declared.convention,
        "output_tensor_requires_grads": list(map(int, declared.required)),
    }


def _name_and_ports(declared: Forward | Backward, dialect: str) -> dict[str, Any]:
    name = write_callee(Callee(declared.name, declared.keywords, declared.text_as_bytes))
    attributes: dict[str, Any] = {dialect: name}
    for side, ports in (("input", declared.inputs), ("output", declared.outputs)):
        attributes[f"{side}_tensor_types"] = [port.code for port in ports]
        attributes[f"{side}_tensor_ranks"] = [port.rank for port in ports]
    return attributes


def _add_constant(found: dict[str, Any], position: int, value: Any) -> None:
    items = value if type(value) is tuple else (value,)
    family = type(items[0]).__name__ if items else "int"
    kind = "tuple" if type(value) is tuple else "scalar"
    buffer = found.setdefault(f"input_{family}_{kind}s", [])
    found.setdefault(f"input_{family}_{kind}_positions", []).append(position)
    if kind == "tuple":
        found.setdefault(f"input_{family}_tuple_begins", []).append(len(buffer))
    buffer += map(int, items) if family == "bool" else items


def why_no_constant(label: str, value: Any, dialect: str) -> str | None:
    """Return why a PythonOp cannot hold a value as an argument; None if it can."""
    items = value if type(value) is tuple else (value,)
    kinds = {type(item) for item in items}
    if len(kinds) > 1 or not kinds <= ({bool, int, float, str} if dialect == "extensions" else {bool, int, float}):
        text = ", and the dialect 'extensions' text" if kinds == {str} else ""
        return (
            f"{label} is {type(value).__name__} {value!r:.80}, an object: PythonOp has bool, int and float constants, "
            f"and tuples of one of these{text}; graph.save(path) keeps any"
        )
    for item in items:
        if type(item) is bool and dialect == "name":
            return f"{label} is {item!r}, and the dialect 'name' has no bool"
        if type(item) is int and item not in _INT64:
            return f"{label} is {item}, which int64 cannot hold"
        if type(item) is float and dialect != "extensions" and item == item:
            with np.errstate(over="ignore"):
                narrow = float(np.float32(item))
            if narrow != item:
                return (
                    f"{label} is {item!r}, which float32 cannot hold (it would become {narrow!r}): pass it as an "
                    "array, or save the graph with graph.save(path)"
                )
    return None


def set_attributes(node: Any, attributes: dict[str, Any]) -> None:
    """Set these attributes of a PythonOp or PythonOpGrad, and no others."""
    known = FORWARD if node.op_type == "PythonOp" else BACKWARD
    del node.attribute[:]
    for name, value in attributes.items():
        node.attribute.append(helper.make_attribute(name, value, attr_type=known[name]))


def speak(node: Any, dialect: str, pointers: dict[int, Any] | None) -> str | None:
    """Put a PythonOp or PythonOpGrad that was read into a dialect; the name of its function, None for other nodes.

    A ValueError says that the dialect cannot say what an attribute says.
    """
    if node.domain != DOMAIN or node.op_type not in ("PythonOp", "PythonOpGrad"):
        return None
    try:
        if dialect == "extensions":
            raise ValueError("onnxruntime-extensions have operators of their own: use 'func_name' or 'name'")
        if node.op_type == "PythonOp":
            declared: Any = read_forward(node, False, pointers)
            attributes = forward_attributes(declared, dialect)
        else:
            declared = read_backward(node)
            attributes = backward_attributes(declared, dialect)
    except ValueError as error:
        raise ValueError(f"{node_label(node)}, read from a model, cannot be exported: {error}") from None
    set_attributes(node, attributes)
    return str(declared.name)
