"""pyop: a Python function on NumPy arrays becomes an op.

An op has declared outputs, takes its arguments without copying, and costs nanoseconds to dispatch. It runs eagerly on
arrays, or becomes a node of a graph that C++ runs.

>>> import numpy as np, pyop
>>> @pyop.op("float64[n], float64[n] -> float64[]")
... def dot(x, y):
...     return np.dot(x, y)
>>> dot(np.ones(3), np.arange(3.0))
array(3.)
>>> plan = pyop.trace(lambda x, y: dot(np.sin(x), y), "float64[n]", "float64[n]").compile()
>>> plan(np.zeros(3), np.ones(3))
array(0.)
"""

from __future__ import annotations

from . import _core, autograd, contrib, debug, up_calls
from ._core import GraphError, InputError, Node, OutputError, Plan, PyopError, Tensor, Value, __version__
from .autograd import Function, enable_grad, no_grad
from .check import check
from .compiling import CompiledFunction, RetraceWarning, compile  # noqa: A004
from .config import build_config, get_include
from .declare.dims import Dim
from .declare.signature import Signature
from .declare.spec import Spec
from .gradients.rule import defjvp, defvjp
from .gradients.saved import saved
from .gradients.table import NoRule
from .graph.explain import Explanation
from .graph.graph import Graph
from .graph.value_methods import install as install_value
from .ops import op_gradients as _op_gradients  # noqa: F401 - gives Op its methods
from .ops.op import Op, op
from .ops.py_func import numpy_function, py_func
from .profile import Profile, profile
from .saving import load, pickles
from .tracing.trace import trace
from .transforms.stop import stop_gradient
from .transforms.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp, vmap

__all__ = [
    "CompiledFunction",
    "Dim",
    "Explanation",
    "Function",
    "Graph",
    "GraphError",
    "InputError",
    "NoRule",
    "Node",
    "Op",
    "OutputError",
    "Plan",
    "Profile",
    "PyopError",
    "RetraceWarning",
    "Signature",
    "Spec",
    "Tensor",
    "Value",
    "__version__",
    "autograd",
    "build_config",
    "check",
    "compile",
    "contrib",
    "debug",
    "defjvp",
    "defvjp",
    "enable_grad",
    "get_include",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "load",
    "no_grad",
    "numpy_function",
    "op",
    "profile",
    "py_func",
    "saved",
    "stop_gradient",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
]

up_calls.install()
install_value()
pickles.install()
for _stand_in in (Value, Tensor):
    _core.match_as_array(_stand_in)
del _stand_in

# Public names live here, wherever they are defined: for reprs, tracebacks and pickles.
for _public in (
    CompiledFunction,
    Explanation,
    RetraceWarning,
    GraphError,
    InputError,
    NoRule,
    OutputError,
    PyopError,
    Op,
    Plan,
    Tensor,
    Value,
):
    _public.__module__ = "pyop"
del _public


_LAZY = ("onnx", "scipy")  # what needs other packages is imported when somebody asks for it


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'pyop' has no attribute {name!r}")
    import importlib

    try:
        return importlib.import_module(f"pyop.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY])
