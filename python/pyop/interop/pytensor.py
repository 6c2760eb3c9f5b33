"""Use ops in PyTensor, and so in PyMC: `wrap` makes an Op of PyTensor of an op, and `op_of` the reverse.

>>> import numpy as np, pyop, pytensor
>>> import pytensor.tensor as pt
>>> from pyop.interop.pytensor import wrap
>>> @pyop.op("float64[n], float64[n] -> float64[]")
... def dot(x, y):
...     return np.dot(x, y)
>>> @dot.vjp
... def _(ct, x, y):
...     return ct * y, ct * x
>>> x, y = pt.dvectors("xy")
>>> f = pytensor.function([x, y], pytensor.grad(wrap(dot)(x, y), [x, y]), mode="FAST_COMPILE")
>>> f(np.arange(3.0), np.ones(3))
[array([1., 1., 1.]), array([0., 1., 2.])]
"""

from __future__ import annotations

from typing import Any

from .._core import Op
from . import pytensor_rewrites  # noqa: F401  # registered with PyTensor
from .pytensor_graph import op_of
from .pytensor_op import PyopOp

__all__ = ["PyopOp", "op_of", "wrap"]


def wrap(op: Op, **statics: Any) -> PyopOp:
    """Return an Op of PyTensor that calls an op.

    Parameters
    ----------
    op : Op
        With a fixed number of arrays, whose results are declared with their dtypes and numbers of dimensions.
    **statics : object
        Static arguments that are fixed; others are passed by keyword when it is called.

    Returns
    -------
    PyopOp
        Called with variables, arrays and numbers, in the containers that the op takes. It has static shapes and
        `infer_shape` by the declaration and gradients by the op's rules, in the spelling of PyTensor 2 and 3. Calls
        of a stateless op with equal inputs are merged, those of a stateful one never. Arguments of ``mutates=`` are
        copied, unless nobody reads them later.

    Raises
    ------
    TypeError
        `op` is no op, takes any number of arrays, or has no such static parameter.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> import pytensor.tensor as pt
    >>> from pyop.interop.pytensor import wrap
    >>> twice = wrap(pyop.op(lambda x: np.tile(x, 2), "float64[n] -> float64[2*n]"))
    >>> twice(pt.dvector("x")).type.ndim, twice(np.ones(2)).eval(mode="FAST_COMPILE")
    (1, array([1., 1., 1., 1.]))
    """
    return PyopOp(op, statics)
