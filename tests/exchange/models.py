"""Small models, made node by node."""

import numpy as np
from onnx import AttributeProto, TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

import pyop
import pyop.onnx

F32, I64, F64 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE


def value(name, code=F32, rank=1):
    return helper.make_tensor_value_info(name, code, None if rank is None else [None] * rank)


def node(op_type, inputs, outputs, /, **attributes):
    """A node of com.microsoft; an empty list is INTS."""
    made = helper.make_node(op_type, inputs, outputs, name="n", domain="com.microsoft")
    for key, item in attributes.items():
        if item is not None:
            kind = AttributeProto.INTS if item == [] else None
            made.attribute.append(helper.make_attribute(key, item, attr_type=kind))
    return made


def python_op(
    function="m.f", inputs=("x",), outputs=("y",), convention=None, types=None, out_types=None, ranks=None, **kw
):
    """A PythonOp on float32 vectors, unless told otherwise."""
    attributes = {
        "func_name": function,
        "input_convention": "d" * len(inputs) if convention is None else convention,
        "input_tensor_types": [F32] * len(inputs) if types is None else types,
        "input_tensor_ranks": [1] * len(inputs) if ranks is None else ranks,
        "output_tensor_types": [F32] * len(outputs) if out_types is None else out_types,
        "output_tensor_ranks": [1] * len(outputs),
    }
    return node("PythonOp", list(inputs), [f"ctx_{outputs[0]}", *outputs], **(attributes | kw))


def python_op_grad(function="m.f", context="ctx_y", inputs=("g",), outputs=("dx",), convention="d", **kw):
    attributes = {
        "func_name": function,
        "output_convention": convention,
        "input_tensor_types": [F32] * len(inputs),
        "input_tensor_ranks": [1] * len(inputs),
        "output_tensor_types": [F32] * len(outputs),
        "output_tensor_ranks": [1] * len(outputs),
        "output_tensor_requires_grads": [1] * len(outputs),
    }
    return node("PythonOpGrad", [context, *inputs], list(outputs), **(attributes | kw))


def model(nodes, inputs, outputs, initializers=(), functions=(), opset=20):
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), initializer=list(initializers))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    opsets += [helper.make_opsetid(domain, 1) for domain in {f.domain for f in functions}]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


X = np.array([-1.0, 2.0, -3.0], np.float32)


def written(graph, dialect="func_name"):
    made = pyop.onnx.export(graph, dialect=dialect)
    checker.check_model(made, full_check=True)
    return made


def elsewhere(made, feeds):
    """Results of a runtime that is not pyop."""
    try:
        import onnxruntime as ort
    except ModuleNotFoundError:
        return ReferenceEvaluator(made).run(None, feeds)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)
