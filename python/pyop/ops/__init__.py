"""How a Python function becomes an op: the decorator, its gradient rules, TensorFlow's front door."""

from .._core import Op
from ..deferred import methods_of

methods_of(Op, "pyop.ops.op_gradients", "vjp", "jvp", "jac", "_declare_fallback")
