"""Differentiate recorded computations: Tensors, Functions with a backward of their own, and the engine.

The names are torch's, for arrays of NumPy. Nothing here starts a thread.

>>> import numpy as np, pyop
>>> from pyop import autograd
>>> class Scale(autograd.Function):
...     @staticmethod
...     def forward(ctx, x, factor):
...         ctx.factor = factor
...         return factor * x
...     @staticmethod
...     def backward(ctx, g):
...         return ctx.factor * g, None
>>> x = autograd.Tensor(np.array([1.0, 2.0]), requires_grad=True)
>>> (slope,) = autograd.grad(Scale.apply(x, 3.0), [x], np.ones(2))
>>> slope
Tensor([3., 3.])
"""

from __future__ import annotations

from .._core import GradNode, Tensor
from .anomaly import detect_anomaly
from .derivatives import backward, grad
from .forward import jvp
from .function import Function, once_differentiable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .tensor import install
from .vmap import vmap

__all__ = ["Function", "GradNode", "GradcheckError", "Tensor", "backward", "detect_anomaly", "enable_grad", "grad"]
__all__ += ["gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled", "jvp", "no_grad", "once_differentiable"]
__all__ += ["set_grad_enabled", "vmap"]

install()
