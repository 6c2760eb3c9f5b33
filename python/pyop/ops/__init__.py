"""Turn a Python function into an op: the decorator, its gradient rules, TensorFlow's ``py_func``."""

from .._core import Op
from ..deferred import methods_of

methods_of(Op, "pyop.ops.op_gradients", "vjp", "jvp", "jac", "_declare_fallback")
