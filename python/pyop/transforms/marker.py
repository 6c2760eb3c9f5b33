"""Start a differentiation: make a Value of its own for each argument.

So an array that a function closes over is not taken for its argument.
"""

from __future__ import annotations

from typing import Any

from .._core import Value, fill_up_call
from ..containers import plain_array
from ..declare.spec import Spec
from ..gradients.rule import linear
from ..gradients.unbroadcast import primitive
from ..graph.forms import pass_on

__all__ = ["argument", "check_has_gradient", "open_value"]


@primitive(lambda x: x if isinstance(x, Spec) else Spec.of(x))
def argument(x: Any) -> Any:
    """Return the argument itself. No call of it is left in a plan."""
    return x


pass_on(argument)
linear(argument, lambda ct, ans, x: ct, ("x",))
argument._pyop_opens = True  # type: ignore[attr-defined]  # for pyop.graph.known
fill_up_call("opened", argument)


def check_has_gradient(leaf: Any, k: int) -> None:
    """Raise for a leaf of argument `k` that is no array of real or complex numbers."""
    dtype = leaf.dtype
    if dtype is not None and dtype.kind not in "fc":
        what = leaf.spec if isinstance(leaf, Value) else f"{dtype}{list(leaf.shape)}"
        if dtype.kind == "O":
            raise TypeError(
                f"argument {k} is {what}, and only arrays of real or complex numbers have gradients: containers of "
                "arrays are tuples, lists, dicts, named tuples and dataclasses, so pass dict(x) or list(x) of others, "
                "and x.astype(float) of an array of numbers"
            )
        raise TypeError(
            f"argument {k} is {what}, and only arrays of real or complex numbers have gradients: convert it with "
            ".astype(float), or leave it out of argnums"
        )


def open_value(graph: Any, leaf: Any, k: int) -> Value:
    """Return a Value that stands for a leaf of argument `k` and for nothing else."""
    if not isinstance(leaf, Value):
        leaf = graph.constant(plain_array(leaf, "an argument"))
    check_has_gradient(leaf, k)
    made = argument(leaf)
    assert isinstance(made, Value)
    made._show(leaf, False, True)  # the function is given the array of its caller
    return made
