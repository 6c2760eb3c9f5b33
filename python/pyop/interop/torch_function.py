"""Turn a function of tensors into a function of arrays, with its gradient by torch.

Tensors are made over the memory of the arrays, and arrays over that of the results. torch has no read-only tensors, so
a function that writes into an argument is detected after the call, by the version that torch counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .._tree import flatten, map_leaves
from ..gradients.saved import collecting, saved
from .torch_arrays import as_array, torch_dtype

__all__ = ["TorchFunction"]

_INTEGERS = {1: np.uint8, 2: np.uint16}


class _Lent:
    """Present the memory of an array as writable: torch warns of other memory."""

    def __init__(self, x: Any) -> None:
        self.array = x
        self.__array_interface__ = {**x.__array_interface__, "data": (x.__array_interface__["data"][0], False)}


def lent_tensor(x: Any) -> torch.Tensor:
    """Return a tensor over the memory of an array; a copy if torch cannot show it (negative steps, byte order)."""
    if not x.dtype.isnative or not x.flags.aligned or any(step < 0 or step % x.itemsize for step in x.strides):
        x = np.array(x, x.dtype.newbyteorder("="), order="C")
    theirs = torch_dtype(x.dtype)
    if x.dtype.kind == "V" or x.dtype.num > 24:  # of ml_dtypes
        return lent_tensor(x.view(_INTEGERS[x.dtype.itemsize])).view(theirs)
    return torch.from_numpy(x if x.flags.writeable else np.asarray(_Lent(x)))


class TorchFunction:
    """Call a function of tensors with arrays; it can be pickled if that can."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.__name__ = name
        try:
            target = function.forward if isinstance(function, torch.nn.Module) else function
            self.__signature__ = inspect.signature(target)
        except (TypeError, ValueError):
            pass

    def __call__(self, *arguments: Any, **statics: Any) -> Any:
        arrays, form = flatten(arguments)
        tensors = [lent_tensor(x) for x in arrays]
        recording = collecting(self)
        if recording:
            for x in tensors:
                x.requires_grad_(x.is_floating_point() or x.is_complex())
        versions = [x._version for x in tensors]
        with torch.enable_grad():
            given = [x.view_as(x) for x in tensors] if recording else tensors
            result = self.function(*form.unflatten(given), **statics)
        if versions != [x._version for x in tensors]:
            raise RuntimeError(
                f"the torch function {self.__name__!r} has written into an argument, whose memory is the "
                "caller's: let it write into x.clone()"
            )
        outs = [y if isinstance(y, torch.Tensor) else torch.tensor(0) for y in flatten(result)[0]]
        self._refuse_others(outs, tensors if recording else [])
        shown = map_leaves(lambda y: self._as_result(y, arrays), result)
        return saved(shown, (tensors, outs)) if recording else shown

    def _as_result(self, y: Any, arrays: Sequence[Any]) -> Any:
        if not isinstance(y, torch.Tensor):
            return y
        if y.device.type != "cpu":
            raise TypeError(
                f"the torch function {self.__name__!r} returned a tensor on {y.device}, and arrays are on the "
                "CPU: return y.cpu()"
            )
        array = as_array(y.detach())
        if any(np.may_share_memory(array, x) for x in arrays):
            array.flags.writeable = False
        return array

    def _refuse_others(self, outs: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Raise if results depend on other tensors whose gradient torch is to record: it would be lost."""
        known = {id(x) for x in inputs}
        waiting = [y.grad_fn for y in outs if y.grad_fn is not None]
        others = any(y.requires_grad and y.grad_fn is None and id(y) not in known for y in outs)
        seen = set(waiting)
        while waiting and not others:
            node = waiting.pop()
            variable = getattr(node, "variable", None)
            others = variable is not None and id(variable) not in known
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        if others:
            raise TypeError(
                f"the torch function {self.__name__!r} computes with tensors that require a gradient and are none "
                "of its arguments (the parameters of a module?): it would be lost. module.requires_grad_(False) makes "
                "them constants; else pass them too, and call torch.func.functional_call(module, {'weight': w}, (x,))"
            )

    def pull(self, ct: Any, *arguments: Any, saved: Any, needs: Any) -> Any:
        """Return the gradients in reverse mode, by torch's record."""
        tensors, outs = saved
        del needs
        pairs = [
            (y, lent_tensor(c).to(y.dtype))
            for y, c in zip(outs, flatten(ct)[0], strict=True)
            if y.requires_grad and c is not None
        ]
        wanted = [x for x in tensors if x.requires_grad]
        raw_gradients: Any = [None] * len(wanted)
        if pairs and wanted:
            raw_gradients = torch.autograd.grad(
                [y for y, _ in pairs], wanted, [c for _, c in pairs], retain_graph=True, allow_unused=True
            )
        each = iter(raw_gradients)
        parts = [next(each) if x.requires_grad else None for x in tensors]
        gradients = flatten(arguments)[1].unflatten([None if g is None else as_array(g.detach()) for g in parts])
        return gradients[0] if len(arguments) == 1 else tuple(gradients)
