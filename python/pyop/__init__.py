"""Turn Python functions on NumPy arrays into ops, graphs and compiled plans.

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

import gc
import importlib
from typing import TYPE_CHECKING

# What is imported stays: looking for cycles in it again and again would take a tenth of the time.
_collects = gc.isenabled()
gc.disable()
try:
    from . import config  # noqa: F401  what is missing is told before anything needs it

    # isort: split
    from . import _core, saving, up_calls
    from ._core import GraphError, InputError, Node, OutputError, Plan, PyopError, Value, __version__
    from .compiling import CompiledFunction, RetraceWarning, compile  # noqa: A004
    from .declare.dims import Dim
    from .declare.spec import Spec
    from .deferred import methods_of
    from .graph.graph import Graph
    from .graph.value_methods import install as install_value
    from .saving import load
finally:
    if _collects:
        gc.enable()
del _collects

if TYPE_CHECKING:
    from . import autograd, contrib, debug
    from .autograd import Function, Tensor, enable_grad, no_grad
    from .checking import check
    from .compiling.disable import disable
    from .config import build_config, get_cmake_dir, get_include
    from .declare.signature import Signature
    from .gradients.rule import defjvp, defvjp
    from .gradients.saved import saved
    from .gradients.table import NoRule
    from .graph.explain import Explanation
    from .interop.dlpack import from_dlpack
    from .loops.branching import cond
    from .loops.counting import fori_loop
    from .loops.scanning import scan
    from .loops.until import while_loop
    from .native.native_op import native_op
    from .ops.op import Op, op
    from .ops.py_func import numpy_function, py_func
    from .pictures.explorer import explore
    from .profiling import Profile, profile
    from .tracing.trace import trace
    from .transforms.stop import stop_gradient
    from .transforms.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp, vmap

__all__ = ["CompiledFunction", "Dim", "Explanation", "Function", "Graph", "GraphError", "InputError", "NoRule"]
__all__ += ["Node", "Op", "OutputError", "Plan", "Profile", "PyopError", "RetraceWarning", "Signature", "Spec"]
__all__ += ["Tensor", "Value", "__version__", "autograd", "build_config", "check", "compile", "cond", "contrib"]
__all__ += [
    "debug",
    "defjvp",
    "defvjp",
    "disable",
    "enable_grad",
    "explore",
    "fori_loop",
    "from_dlpack",
    "get_cmake_dir",
]
__all__ += ["get_include", "grad", "hessian", "hvp", "jacobian", "jvp", "load", "native_op", "no_grad"]
__all__ += ["numpy_function", "op", "profile", "py_func", "saved", "scan", "stop_gradient", "trace", "value_and_grad"]
__all__ += ["vjp", "vmap", "while_loop"]

# What most programs never need is imported when somebody asks for it: public names by their modules,
_BY_MODULE = {
    "autograd": "Function Tensor enable_grad no_grad",
    "checking": "check",
    "compiling.disable": "disable",
    "config": "build_config get_cmake_dir get_include",
    "declare.signature": "Signature",
    "gradients.rule": "defjvp defvjp",
    "gradients.saved": "saved",
    "gradients.table": "NoRule",
    "graph.explain": "Explanation",
    "interop.dlpack": "from_dlpack",
    "loops.branching": "cond",
    "loops.counting": "fori_loop",
    "loops.scanning": "scan",
    "loops.until": "while_loop",
    "native.native_op": "native_op",
    "ops.op": "Op op",
    "ops.py_func": "numpy_function py_func",
    "pictures.explorer": "explore",
    "profiling": "Profile profile",
    "tracing.trace": "trace",
    "transforms.stop": "stop_gradient",
    "transforms.transforms": "grad hessian hvp jacobian jvp value_and_grad vjp vmap",
}
_HOMES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
# and modules, of which some need other packages.
_OPTIONAL = ("onnx", "scipy")
_MODULES = ("autograd", "contrib", "debug", *_OPTIONAL)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        attribute: object = getattr(importlib.import_module(f"pyop.{_HOMES[name]}"), name)
        globals()[name] = attribute
        return attribute
    if name not in _MODULES:
        raise AttributeError(f"module 'pyop' has no attribute {name!r}")
    try:
        return importlib.import_module(f"pyop.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return sorted([*__all__, *_OPTIONAL])


up_calls.install()
install_value()
saving.install()
methods_of(_core.Op, "pyop.native.as_ufunc", "ufunc")
methods_of(Plan, "pyop.profiling.watched", "run")
methods_of(Plan, "pyop.interop.numba_type", "_numba_type_", "cfunc")
_DRAWN = ("show", "to_dot", "to_mermaid", "to_html", "_repr_svg_", "_repr_html_")
methods_of(Graph, "pyop.pictures.methods", *_DRAWN)
methods_of(Plan, "pyop.pictures.methods", *_DRAWN)
methods_of(Value, "pyop.pictures.methods", "_repr_svg_", "_repr_html_")
for _kind in (Plan, CompiledFunction, _core.Op):
    methods_of(_kind, "pyop.machines.mapping", "map")
methods_of(Graph, "pyop.machines.partition", "partition")
methods_of(Graph, "pyop.machines.dask_graphs", "to_dask", "submit")
for _named in (Graph, Plan, CompiledFunction, _core.Op):
    methods_of(_named, "pyop.machines.tokens", "__dask_tokenize__")
for _stand_in in (Value, _core.Tensor):
    _core.match_as_array(_stand_in)
del _kind, _named, _stand_in

# Public names live here, wherever they are defined: for reprs, tracebacks and pickles.
for _public in (
    CompiledFunction,
    RetraceWarning,
    GraphError,
    InputError,
    OutputError,
    PyopError,
    Plan,
    Value,
    _core.Op,
    _core.Tensor,
):
    _public.__module__ = "pyop"
del _public
