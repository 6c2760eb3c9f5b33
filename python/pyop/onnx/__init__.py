"""Export graphs to ONNX models and load them, with PythonOp for calls that only Python can make.

Needs the ``onnx`` package: ``pip install 'pyop-core[onnx]'``.

>>> import numpy as np, pyop, pyop.onnx
>>> g = pyop.trace(lambda x: np.sin(x) + 1.0, "float64[n]")
>>> model = pyop.onnx.export(g)
>>> [node.op_type for node in model.graph.node]
['Sin', 'Add']
>>> pyop.onnx.load(model).compile()(x=np.zeros(2))
{'add': array([1., 1.])}
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("onnx") is None:
    raise ModuleNotFoundError(
        "pyop.onnx needs the package 'onnx', which is not installed: pip install 'pyop-core[onnx]'", name="onnx"
    )

from .boxes import box
from .exporting import export
from .extensions import register_extensions
from .loading import load
from .python_op import Context
from .registry import register, unregister
from .training_pair import AutogradFunction, as_autograd_function

__all__ = [
    "AutogradFunction", "Context", "as_autograd_function", "box", "export", "load", "register", "register_extensions",
    "unregister",
]  # fmt: skip
