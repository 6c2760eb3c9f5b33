"""Detect whether a model still is what pyop's description in it describes.

Other tools change nodes, constants and inputs and leave the description alone. Additions that nobody reads here
(inferred types, documentation, names of nodes) do not count.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

__all__ = ["digest"]


def digest(model: Any) -> str:
    """Return a digest of what a model computes."""
    hasher = hashlib.sha256()
    versions = sorted((entry.domain, entry.version) for entry in model.opset_import)
    _add(hasher, "versions", [list(pair) for pair in versions])
    _graph(hasher, model.graph)
    for body in model.functions:
        _add(hasher, "function", [body.domain, body.name, list(body.input), list(body.output), list(body.attribute)])
        for node in body.node:
            _node(hasher, node)
    return hasher.hexdigest()[:32]


def _add(found: Any, kind: str, parts: Any) -> None:
    found.update(json.dumps([kind, parts]).encode())


def _graph(found: Any, graph: Any) -> None:
    for info in graph.input:
        _add(found, "input", info.name)
        found.update(info.type.SerializeToString(deterministic=True))
    _add(found, "outputs", [[info.name, info.type.tensor_type.elem_type] for info in graph.output])
    for tensor in sorted(graph.initializer, key=lambda tensor: str(tensor.name)):
        _tensor(found, tensor)
    for sparse in sorted(graph.sparse_initializer, key=lambda tensor: str(tensor.values.name)):
        found.update(sparse.SerializeToString(deterministic=True))
    for node in graph.node:
        _node(found, node)


def _node(found: Any, node: Any) -> None:
    _add(found, "node", [node.domain, node.op_type, list(node.input), list(node.output)])
    for attribute in sorted(node.attribute, key=lambda attribute: str(attribute.name)):
        _add(found, "attribute", [attribute.name, attribute.ref_attr_name, attribute.type])
        graphs = [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
        for graph in graphs:
            _graph(found, graph)
        if attribute.HasField("t"):
            _tensor(found, attribute.t)
        elif not graphs:
            found.update(attribute.SerializeToString(deterministic=True))


def _tensor(found: Any, tensor: Any) -> None:
    """Add a tensor by its elements: a tool may spell them in another way, or have read them from another file."""
    from ..onnx.elements import to_array

    _add(found, "tensor", [tensor.name, tensor.data_type, list(tensor.dims)])
    try:
        array = to_array(tensor, "a tensor")
    except ValueError:
        found.update(tensor.SerializeToString(deterministic=True))
        return
    if array.dtype.hasobject:
        _add(found, "texts", [repr(item) for item in array.ravel().tolist()])
    else:
        found.update(np.ascontiguousarray(array).tobytes())
