"""Make the kernel of a torch op for the CPU: a call of the pyop op on the memory of the tensors.

The function has read-only views of it, as always, but for arrays that it has declared to write into (`in_place`): there
it writes into the tensor itself. Results never show the memory of an argument, or of each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch.autograd import forward_ad

from .._tree import flatten
from ..declare.signature import Signature
from ..ops.op import op as declare
from .derived import signature_of
from .hooks import Hooks
from .torch_arrays import as_array, as_tensor, as_tensors

__all__ = ["kernel_of", "refusing", "shortcut_of"]


def kernel_of(hooks: Hooks, bound: dict[str, Any], written: Sequence[bool]) -> Callable[..., Any]:
    """Return the kernel: a function of flat tensors, and static arguments by keyword."""
    if any(written):
        return _in_place(hooks, bound, written)
    if hooks.saves:
        return _saving(hooks, bound)
    if "context" in _parameters(hooks):
        return _reading_context(hooks, bound)

    def kernel(*tensors: Any, **statics: Any) -> Any:
        arrays = [as_array(x) for x in tensors]
        return _packed(as_tensors(hooks.call(arrays, bound | statics), arrays))

    # An abstract rule may tell of another container for other arguments.
    return _direct(hooks) if hooks._abstract is None and _of_arrays_alone(hooks) else kernel


def _of_arrays_alone(hooks: Hooks) -> bool:
    """Return whether the op takes flat arrays and nothing else, and returns one."""
    leaf = hooks.out_tree is not None and hooks.out_tree.is_leaf
    return leaf and hooks.is_flat and not (hooks.statics or hooks.saves or "context" in _parameters(hooks))


def _direct(hooks: Hooks) -> Callable[..., Any]:
    op, from_numpy = hooks.op, torch.from_numpy

    def kernel(*tensors: Any) -> Any:
        arrays = [as_array(x) for x in tensors]
        y = op(*arrays)
        # Views of arguments are read-only, and no carray: what is left is the very argument.
        for x in arrays:
            if y is x:
                return as_tensor(y.copy())
        if not y.flags.carray:
            return as_tensor(y.copy())
        try:
            return from_numpy(y)
        except TypeError:
            return as_tensor(y)

    return kernel


def refusing(name: str, key: str) -> Callable[..., NoReturn]:
    """Return the kernel for tensors of another device, which raises."""

    def refuse(*tensors: Any, **statics: Any) -> NoReturn:
        raise TypeError(
            f"op {name!r} computes with NumPy, on the CPU, and was given a tensor of {key}: pass x.cpu(), and bring "
            "the result back with .to(x.device)"
        )

    return refuse


def _packed(tensors: tuple[Any, ...]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors


def shortcut_of(hooks: Hooks, general: Callable[..., Any], plain: int) -> Callable[..., Any] | None:
    """Return the Autograd kernel for ops of one result: the call itself where nothing else is needed.

    The core takes the tensors, faster than by `Tensor.numpy`. `plain` is the set of keys that a call dispatches on
    where there are only tensors of the CPU.
    """
    spec = hooks.op.spec
    if not _of_arrays_alone(hooks):
        return None
    op, from_numpy = hooks.op, torch.from_numpy
    any_requires_grad, enabled = torch._C._any_requires_grad, torch.is_grad_enabled

    def of_one(keyset: Any, x: Any) -> Any:
        if x.requires_grad or forward_ad._current_level >= 0 or keyset.raw_repr() != plain:
            return general(keyset, x)
        y = op(x)
        if y.flags.carray:
            try:
                return from_numpy(y)
            except TypeError:
                pass
        return as_tensor(y)

    def of_two(keyset: Any, x1: Any, x2: Any) -> Any:
        if x1.requires_grad or x2.requires_grad or forward_ad._current_level >= 0 or keyset.raw_repr() != plain:
            return general(keyset, x1, x2)
        y = op(x1, x2)
        if y.flags.carray:
            try:
                return from_numpy(y)
            except TypeError:
                pass
        return as_tensor(y)

    def of_several(keyset: Any, *tensors: Any) -> Any:
        if keyset.raw_repr() != plain or forward_ad._current_level >= 0 or (enabled() and any_requires_grad(*tensors)):
            return general(keyset, *tensors)
        arrays = [as_array(x) for x in tensors]  # what is not declared is not converted by the core
        y = op(*arrays)
        if y.flags.carray and not any(y is x for x in arrays):
            try:
                return from_numpy(y)
            except TypeError:
                pass
        return as_tensor(y.copy())

    if spec.inputs is None or len(hooks.inputs) > 2:
        return of_several
    return of_one if len(hooks.inputs) == 1 else of_two


class _Held:
    """Hold the memory of a context's tensor, which keeps the context: no two that live are at one address."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.memory = np.zeros(1, np.int64)
        _held[self.memory.ctypes.data] = self

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__


# By address, and not by a number in it: torch's checks of ops compare the results of two calls.
_held: WeakValueDictionary[int, _Held] = WeakValueDictionary()


def _saving(hooks: Hooks, bound: dict[str, Any]) -> Callable[..., Any]:
    """Return a kernel with one tensor more: the context, alive as long as torch keeps it for the gradient."""

    def kernel(*tensors: Any, **statics: Any) -> Any:
        arrays = [as_array(x) for x in tensors]
        results, kept = hooks.forward(*arrays, **(bound | statics))
        return (*as_tensors(results, arrays), torch.from_numpy(np.asarray(_Held(kept.context))))

    return kernel


def _parameters(hooks: Hooks) -> tuple[str, ...]:
    pull = getattr(hooks.op.__wrapped__, "hooks", None)
    return tuple(hooks.op.parameters) if isinstance(pull, Hooks) else ()


def _reading_context(hooks: Hooks, bound: dict[str, Any]) -> Callable[..., Any]:
    """Return the pullback of an op that saves; where torch has copied the context, the function runs once more."""
    pull = hooks.op.__wrapped__
    forward: Hooks = pull.hooks

    def kernel(*tensors: Any, **statics: Any) -> Any:
        arrays = [as_array(x) for x in tensors]
        given = bound | statics
        held = _held.get(tensors[-1].data_ptr())
        arrays[-1] = held.context if held else forward.context(-1, arrays[pull.n_out :][: pull.n_in], given)
        return _packed(as_tensors(hooks.call(arrays, given), arrays))

    return kernel


def _in_place(hooks: Hooks, bound: dict[str, Any], written: Sequence[bool]) -> Callable[..., Any]:
    """Return a kernel that calls the function with the memory of the tensors where it writes.

    pyop lends a copy of an argument that is declared as written. So the call uses an op that declares no writes: the
    core checks and lends, and the written arrays replace their read-only views before the function is called.
    """
    spec: Signature = hooks.op.spec
    if hooks.gufunc:
        raise TypeError(
            f"op {hooks.name!r} is a gufunc, which writes into parts of arrays: wrap it with in_place=False"
        )
    fn, own = hooks.op.__wrapped__, threading.local()

    def function(*arrays: Any, **statics: Any) -> Any:
        given, own.arrays = own.arrays, None
        parts = [x if mine is None else mine for x, mine in zip(arrays, given, strict=True)]
        return fn(*hooks.in_tree.unflatten(parts), **statics)

    function.__signature__ = signature_of([f"x{k}" for k in range(len(written))], hooks.statics)  # type: ignore[attr-defined]
    leaves = None if spec.inputs is None else tuple(flatten(spec.inputs)[0])
    inner = declare(
        function,
        Signature(leaves, spec.outputs, False, spec.like, spec.like_inputs, spec.cast),
        name=hooks.name,
        stateful=hooks.stateful,
    )
    abstract = vars(hooks.op).get("_abstract_rule")
    if abstract is not None:
        inner.abstract(abstract.rule)

    def kernel(*tensors: Any, **statics: Any) -> Any:
        arrays = [x.numpy() if w else as_array(x) for x, w in zip(tensors, written, strict=True)]
        mine = [a if w else None for a, w in zip(arrays, written, strict=True)]
        for k, a in enumerate(arrays):
            if any(other is not None and j != k and np.may_share_memory(a, other) for j, other in enumerate(mine)):
                if written[k]:
                    raise ValueError(
                        f"op {hooks.name!r} writes into two tensors that share memory: pass x.clone() for one of them"
                    )
                arrays[k] = a.copy()
        own.arrays = mine
        try:
            result = inner(*arrays, **(bound | statics))
        finally:
            own.arrays = None
        results = [
            y.copy() if any(a is not None and np.may_share_memory(y, a) for a in mine) else y
            for y in flatten(result)[0]
        ]
        return _packed(as_tensors(tuple(results), arrays))

    return kernel
