"""Write PyOp of onnxruntime-extensions: Python functions that stock onnxruntime calls.

There a custom operator is known by its name alone, so every function and set of constants becomes an operator of its
own in the domain ``ai.onnx.contrib``, described in the model's metadata. An exception in such an operator ends the
process, which nothing here can change: the operators print it first.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from ..graph.cells import warn
from .attributes import Forward, Port
from .loading import read_model
from .python_op import PythonCall
from .registry import Table
from .trust import Trust

if TYPE_CHECKING:
    from .python_nodes import PythonNodes

__all__ = ["register_extensions", "write_extension"]

DOMAIN = "ai.onnx.contrib"
# Float16 ends the process there, and complex and bfloat16 have no path through Python lists.
_TYPES = {code: f"dt_{TensorProto.DataType.Name(code).lower()}" for code in (*range(1, 10), 11, 12, 13)}


def write_extension(nodes: PythonNodes, call: Any) -> None:
    """Write a call as an operator of onnxruntime-extensions."""
    outputs = call.results()
    declared, tensors = call.declared(outputs)
    for what, ports in (("input", declared.inputs), ("output", declared.outputs)):
        for k, port in enumerate(ports):
            if port.code not in _TYPES:
                call.fail(f"{what} {k} is of an element type that onnxruntime-extensions cannot pass to Python")
    described = {
        "function": declared.name,
        "arguments": list(declared.constants),
        "tensors": [at is not None for at in declared.tensor_at],
        "keywords": list(call.names),
        "inputs": [[port.code, port.rank] for port in declared.inputs],
        "outputs": [[port.code, port.rank] for port in declared.outputs],
    }
    if declared.text_as_bytes:
        described["text_as_bytes"] = True
    op_type = _operator_name(described)
    nodes.extensions[op_type] = described
    nodes.builder.opsets.setdefault(DOMAIN, 1)
    names = [tensor.name for tensor in tensors], [output.name for output in outputs]
    nodes.builder.add(op_type, *names, call.node.name, domain=DOMAIN)


def _operator_name(described: dict[str, Any]) -> str:
    """Return a name for an operator that encodes all that matters, as all models of a process share the names."""
    base = re.sub(r"\W+", "_", str(described["function"])).strip("_") or "op"
    return f"{base}_{hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]}"


# The operators that this process has, each with the function that it calls.
_registered: dict[str, Any] = {}
_ROOM = 128  # a power of two


def register_extensions(
    model: Any,
    functions: Mapping[str, Any] | None = None,
    *,
    trust: str | None = None,
    modules: Iterable[str] = (),
) -> str:
    """Register the operators of a model exported with ``dialect="extensions"`` with onnxruntime-extensions.

    Parameters
    ----------
    model : onnx.ModelProto, bytes or path
    functions, trust, modules
        As `load` has them.

    Returns
    -------
    str
        The path of the library to give to ``SessionOptions.register_custom_ops_library``.

    Raises
    ------
    ValueError
        The model has no description of its operators, or a malformed one; or this process has an operator of the same
        name and constants already, for another function.

    Examples
    --------
    >>> import numpy as np, pyop, pyop.onnx
    >>> g = pyop.trace(pyop.op(np.unwrap, "float64[n] -> float64[n]"), "float64[n]")
    >>> model = pyop.onnx.export(g, dialect="extensions")
    >>> try:
    ...     library = pyop.onnx.register_extensions(model)
    ... except ImportError:  # it needs onnxruntime-extensions
    ...     library = ""
    >>> isinstance(library, str)
    True
    """
    from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op

    table = Table(functions, Trust.make(trust, modules))
    for op_type, entry in _described(read_model(model)).items():
        declared = _declared(op_type, entry)
        callee = table.find(declared.name, declared.label)  # better now than where an exception ends the process
        if op_type in _registered:
            if _registered[op_type] is not callee.forward:
                raise ValueError(
                    f"{declared.label} is known in this process already, for {_registered[op_type]!r:.100}, and "
                    "onnxruntime-extensions know operators by name alone: export with other names={function: name}"
                )
            continue
        types: list[list[Any]] = [
            [getattr(PyCustomOpDef, _TYPES[port.code]) for port in ports]
            for ports in (declared.inputs, declared.outputs)
        ]
        _make_room(onnx_op, PyCustomOpDef.dt_float)
        _registered[op_type] = callee.forward
        call = PythonCall(declared, table)
        onnx_op(op_type=op_type, inputs=types[0], outputs=types[1])(_operator(call))
    path: str = get_library_path()
    return path


def _make_room(onnx_op: Any, kind: Any) -> None:
    """Make room for an operator: the list of onnxruntime-extensions moves when it is full, under living sessions.

    A session has the address of its operators in that list, whose room doubles. It starts with much. When that is used
    up a warning is given, since such a session ends the process when it runs.
    """
    if not _registered:
        for k in range(_ROOM // 2 + 1):
            onnx_op(op_type=f"pyop_room_{k}", inputs=[kind], outputs=[kind])(lambda x: x)
    count = _ROOM // 2 + 1 + len(_registered)
    if count >= _ROOM and count & (count - 1) == 0:
        warn(
            f"this process has {len(_registered)} operators of onnxruntime-extensions, and one more moves them: "
            "InferenceSessions with such operators that were made so far would end the process when they run. Make "
            "them again, or register all models before the first session",
            RuntimeWarning,
        )


def _described(model: Any) -> dict[str, Any]:
    for entry in model.metadata_props:
        if entry.key == "pyop.extensions":
            try:
                described = json.loads(entry.value)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"the metadata 'pyop.extensions' of the model are malformed: {error}") from None
            if isinstance(described, dict):
                return described
    raise ValueError("the model says nothing of its operators: export it with dialect='extensions'")


def _declared(op_type: str, entry: Any) -> Forward:
    try:
        inputs = tuple(Port(int(code), int(rank)) for code, rank in entry["inputs"])
        outputs = tuple(Port(int(code), int(rank)) for code, rank in entry["outputs"])
        tensors = iter(range(len(inputs)))
        at = tuple(next(tensors) if tensor else None for tensor in entry["tensors"])
        constants = tuple(tuple(a) if isinstance(a, list) else a for a in entry["arguments"])
        keywords = tuple(map(str, entry["keywords"]))
        name = str(entry["function"])
        good = (
            op_type == _operator_name(entry)
            and len(at) == len(constants) >= len(keywords)
            and {p.code for p in (*inputs, *outputs)} <= set(_TYPES)
        )
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise ValueError(f"what the model says of the operator {op_type!r:.80} is malformed: {error!r}") from None
    if not good or next(tensors, None) is not None:
        raise ValueError(f"what the model says of the operator {op_type!r:.80} is malformed")
    return Forward(
        label=f"operator {op_type!r}",
        name=name,
        tensor_at=at,
        constants=constants,
        inputs=inputs,
        outputs=outputs,
        needs_grad=(False,) * len(at),
        training=False,
        written=frozenset(),
        keywords=keywords,
        text_as_bytes=entry.get("text_as_bytes") is True,
    )


def _operator(call: PythonCall) -> Callable[..., Any]:
    def operator(*tensors: Any) -> Any:
        try:
            _context, *results = call(*map(np.asarray, tensors))
        except BaseException:
            print(f"{call.label} failed, and onnxruntime-extensions will now end the process:", file=sys.stderr)
            traceback.print_exc()
            raise
        return results[0] if len(results) == 1 else tuple(results)

    return operator
