"""Make a torch op of a pyop op: its schema and its kernels, all of them from the declaration.

Three kernels are registered. That of the CPU computes, by NumPy on the memory of the tensors. That of Autograd records
where a gradient may be asked for, and otherwise calls that of the CPU itself, if nothing stands between the two. That
of FuncTorchBatched is for `torch.vmap`. The fake one infers specs in torch's symbolic sizes.

The `OpOverload` holds the `Library`, so whoever holds the one, a compiled graph as well as a wrapper, keeps the op
defined. torch's dispatcher holds kernels for ever, so they hold neither: they find the op by a weak reference, and are
emptied when it is gone.
"""

from __future__ import annotations

import keyword
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import _C
from torch._functorch.autograd_function import custom_function_call_vmap_helper
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._functorch.utils import enable_single_level_autograd_function, unwrap_dead_wrappers
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from .hooks import Hooks
from .torch_arrays import dtype_of, torch_dtype
from .torch_kernels import kernel_of, refusing, shortcut_of
from .torch_schema import free_name, returns_of, schema_of

__all__ = ["Definition"]

NAMESPACE = "pyop"
_ELSEWHERE = ("CUDA", "XPU", "MPS")
_lock = threading.RLock()
# What a call dispatches on where there are only tensors of the CPU: no mode, no subclass, no transformation.
_PLAIN = (_C.DispatchKeySet(_C.DispatchKey.CPU) | _C.DispatchKeySet(_C.DispatchKey.AutogradCPU)).raw_repr()
_BELOW = _C._after_autograd_keyset
# The keys of a tensor that is nothing more, and those that a thread adds of its own accord.
_dispatch_keys = _C._dispatch_keys
_OF_TENSOR = _dispatch_keys(torch.empty(0)).raw_repr()
_OF_THREAD = _C._dispatch_tls_local_include_set().raw_repr()


class Definition:
    """Define one op of torch.

    `bound` are static arguments that are fixed. `in_place` means that the function writes into tensors where it has
    declared that it writes. `label` is a name as torch has them.
    """

    def __init__(self, hooks: Hooks, bound: dict[str, Any], in_place: bool, label: str | None = None) -> None:
        self.hooks = hooks
        self.bound = bound
        self.written = tuple(each.written and in_place for each in hooks.inputs)
        if hooks.outputs is None:
            raise TypeError(
                f"torch asks how many results op {hooks.name!r} has before it calls, and its abstract rule tells "
                "only for the arguments of a call: declare the inputs' numbers of dimensions, or the outputs"
            )
        self.n_results = len(hooks.outputs)
        self.saves = hooks.saves
        self._derived: dict[Any, Definition] = {}
        if label is None:
            namespace, name = NAMESPACE, free_name(hooks.name)
        else:
            namespace, _, name = label.partition("::")
            if not all(part.isidentifier() and not keyword.iskeyword(part) for part in (namespace, name)):
                raise ValueError(f"name= is 'namespace::name', as torch has names of ops, got {label!r:.80}")
        self.name = f"{namespace}::{name}"
        schema = schema_of(hooks, bound, self.written)
        library = torch.library.Library(namespace, "FRAGMENT")
        tags = [torch.Tag.pt2_compliant_tag]
        if hooks.stateful:
            tags.append(torch.Tag.nondeterministic_seeded)
        library.define(f"{name}{schema} -> {returns_of(self.n_results, self.saves)}", tags=tuple(tags))
        self.overload: Any = getattr(getattr(torch.ops, namespace), name).default
        self.kernel = kernel_of(hooks, bound, self.written)
        library.impl(name, self.kernel, "CPU")
        for key in _ELSEWHERE:
            library.impl(name, refusing(hooks.name, key), key)
        me = weakref.ref(self)
        torch.library.register_fake(self.name, lambda *a, **k: _alive(me).fake(*a, **k), lib=library)
        general = _autograd_kernel(me, self.kernel, any(self.written))
        autograd = None if any(self.written) else shortcut_of(hooks, general, _PLAIN)
        autograd = general if autograd is None else autograd
        library.impl(name, autograd, "Autograd", with_keyset=True)
        library.impl(name, _batch_kernel(me), "FuncTorchBatched", with_keyset=True)
        self.overload._pyop_definition = self
        self._library = library
        weakref.finalize(self, _empty, self.kernel, general, autograd).atexit = False
        _forget(namespace, name)

    # --- without numbers

    def fake(self, *tensors: Any, **statics: Any) -> Any:
        """Return tensors of which only dtype and shape matter."""
        hooks = self.hooks
        specs = hooks.infer(
            [(dtype_of(x.dtype), tuple(x.shape)) for x in tensors],
            self.bound | statics,
            key=_key,
            equal=lambda a, b: torch._check(
                a == b, lambda: f"op {hooks.name!r} ({hooks.op.spec}): two sizes of one name are {a} and {b}"
            ),
            broadcast=torch.broadcast_shapes,
        )
        late: dict[str, Any] = {}
        made = []
        for k, (dtype, shape) in enumerate(specs):
            if dtype is None or shape is None:
                what = "dtype" if dtype is None else "number of dimensions"
                raise TypeError(
                    f"op {hooks.name!r} ({hooks.op.spec}) does not declare the {what} of result {k}, which torch asks "
                    "for before it calls: declare it, 'float64[n] -> float64[n]', or dtype= of a gufunc declaration"
                )
            sizes = [_late(late, hooks, k, axis) if size is None else size for axis, size in enumerate(shape)]
            made.append(torch.empty(sizes, dtype=torch_dtype(dtype), device=tensors[0].device if tensors else None))
        if self.saves:
            made.append(torch.empty(1, dtype=torch.int64, device=made[0].device))
        return self._packed(made)

    def _packed(self, parts: Sequence[Any]) -> Any:
        """Return results as kernels do."""
        return parts[0] if len(parts) == 1 else tuple(parts)

    # --- derivatives

    def pullback(self, needs: tuple[bool, ...], n_out: int) -> Definition:
        """Return the op that computes these gradients."""
        gradient = self.hooks.gradient
        known = self._derived.get((needs, n_out, gradient))
        if known is not None:
            return known
        if self.hooks.saves != self.saves:
            raise RuntimeError(
                f"op {self.hooks.name!r} was wrapped before its gradient rule, which takes saved=: wrap it again"
            )
        if not self.hooks.differentiable:
            self.hooks.rule().refuse("reverse mode", "defvjp")
        return self._derive((needs, n_out, gradient), lambda: self.hooks.vjp_op(needs, n_out))

    def push_forward(self, argnums: tuple[int, ...], n_out: int) -> Definition:
        """Return the op that computes the tangents of the results from those of these arguments."""
        key = ("jvp", argnums, n_out, self.hooks.gradient)
        return self._derive(key, lambda: self.hooks.jvp_op(argnums, n_out))

    def _derive(self, key: Any, op: Callable[[], Any]) -> Definition:
        definition = self._derived.get(key)
        if definition is None:
            with _lock:
                definition = self._derived.get(key)
                if definition is None:
                    definition = self._derived[key] = Definition(Hooks(op()), self.bound, False)
        return definition

    def run(self, tensors: tuple[Any, ...], statics: dict[str, Any]) -> Any:
        """Call the op, without torch's dispatcher where it would find nothing but the kernel."""
        if torch.is_grad_enabled() or not _nothing_between():
            return self.overload(*tensors, **statics)
        for x in tensors:
            if type(x) is not torch.Tensor or _dispatch_keys(x).raw_repr() != _OF_TENSOR:
                return self.overload(*tensors, **statics)
        return self.kernel(*tensors, **statics)

    def run_below(self, keyset: Any, tensors: tuple[Any, ...], statics: dict[str, Any]) -> Any:
        """Call the op without Autograd."""
        if keyset.raw_repr() == _PLAIN:
            return self.kernel(*tensors, **statics)
        with _C._AutoDispatchBelowAutograd():
            return self.overload.redispatch(keyset & _BELOW, *tensors, **statics)

    # --- batches

    def on_batch(self, info: Any, in_dims: tuple[Any, ...], *tensors: Any, **statics: Any) -> Any:
        """Call the op on the examples of a batch: at once if the declaration loops, else one after the other."""
        hooks = self.hooks
        if hooks.gufunc and not self.saves:
            ranks = [None if each.spec.shape is None else len(each.spec.shape) for each in hooks.inputs]
            if None not in ranks and not any("?" in str(each.spec) for each in hooks.inputs):
                results = self.overload(*_aligned(tensors, in_dims, ranks), **statics)
                return results, 0 if self.n_results == 1 else (0,) * self.n_results
        if any(w and dim is None for w, dim in zip(self.written, in_dims, strict=True)):
            raise RuntimeError(
                f"op {hooks.name!r} writes into an array that all examples of torch.vmap share: map over it too, or "
                "wrap the op with in_place=False"
            )
        parts = [
            [x if dim is None else x.select(dim, k) for x, dim in zip(tensors, in_dims, strict=True)]
            for k in range(info.batch_size)
        ]
        if not parts:
            example = [
                x if dim is None else x.new_empty([s for axis, s in enumerate(x.shape) if axis != dim % x.ndim])
                for x, dim in zip(tensors, in_dims, strict=True)
            ]
            one = self.fake(*example, **statics)
            empty = [y.new_empty((0, *y.shape)) for y in (one if isinstance(one, (tuple, list)) else [one])]
            return self._packed(empty), self._packed([0] * len(empty))
        each = [self.overload(*part, **statics) for part in parts]
        if isinstance(each[0], torch.Tensor):
            return torch.stack(each), 0
        results = [torch.stack(part) for part in zip(*each, strict=True)]
        return self._packed(results), self._packed([0] * len(results))


def _nothing_between() -> bool:
    """Return whether no mode, transformation or profiler takes part in the calls of this thread."""
    return (
        not torch.autograd._profiler_enabled()
        and _C._dispatch_tls_local_include_set().raw_repr() == _OF_THREAD
        and not _C._len_torch_dispatch_stack()
        and not _C._len_torch_function_stack()
        and not _C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def _aligned(tensors: Sequence[Any], in_dims: Sequence[Any], ranks: Sequence[Any]) -> list[Any]:
    """Return all looping arguments with the batch in front, and axes of size 1 behind it where they loop less."""
    loops = [x.ndim - rank - (dim is not None) for x, dim, rank in zip(tensors, in_dims, ranks, strict=True)]
    most, aligned = max(loops), []
    for x, dim, loop in zip(tensors, in_dims, loops, strict=True):
        if dim is not None:
            x = x.movedim(dim, 0)
            for _ in range(most - loop):
                x = x.unsqueeze(1)
        aligned.append(x)
    return aligned


def _autograd_kernel(me: Any, kernel: Callable[..., Any], writes: bool) -> Callable[..., Any]:
    """Return the kernel that runs first; see the top of the file."""

    class Recorded(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, definition: Definition, keyset: Any, statics: dict[str, Any], *tensors: Any) -> Any:
            outputs = definition.run_below(keyset, tensors, statics)
            results = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
            count = len(results) - definition.saves
            ctx.definition, ctx.statics, ctx.count = definition, statics, count
            if definition.hooks.differentiable:
                kept = results if definition.hooks.reads_results else results[count:]
                ctx.save_for_backward(*tensors, *kept)
            if forward_ad._current_level >= 0:
                ctx.primals = tensors, tuple([y.detach() for y in results[:count]])
            return outputs if isinstance(outputs, torch.Tensor) else results

        @staticmethod
        def backward(ctx: Any, *cts: Any) -> Any:
            definition: Definition = ctx.definition
            needs = ctx.needs_input_grad[3:]
            pull = definition.pullback(needs, ctx.count)
            gradients = pull.run((*cts[: ctx.count], *ctx.saved_tensors), ctx.statics)
            if isinstance(gradients, torch.Tensor):
                return (None, None, None, *[gradients if need else None for need in needs])
            rest = iter(gradients)
            return (None, None, None, *[next(rest) if need else None for need in needs])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            definition: Definition = ctx.definition
            tensors, results = ctx.primals
            given = [(k, t) for k, t in enumerate(tangents[3:]) if t is not None and tensors[k].is_floating_point()]
            push = definition.push_forward(tuple([k for k, _ in given]), ctx.count)
            output_tangents = push.overload(*[t for _, t in given], *tensors, *results, **ctx.statics)
            extra = (None,) * int(definition.saves)
            if isinstance(output_tangents, torch.Tensor):
                return (output_tangents, *extra) if extra else output_tangents
            return (*output_tangents, *extra)

    apply, any_requires_grad, enabled = Recorded.apply, _C._any_requires_grad, torch.is_grad_enabled
    transforms, plain = _C._are_functorch_transforms_active, _PLAIN

    def autograd(keyset: Any, *tensors: Any, **statics: Any) -> Any:
        if (enabled() and any_requires_grad(*tensors)) or forward_ad._current_level >= 0:
            definition = _alive(me)
            if writes:
                raise RuntimeError(
                    f"op {definition.hooks.name!r} writes into a tensor, and torch records its call for a gradient: "
                    "wrap the op with in_place=False, or call it under torch.no_grad()"
                )
            if transforms():
                # One of torch.func's levels has called this, with tensors of its own: it is the one that records.
                with enable_single_level_autograd_function():
                    results = apply(definition, keyset, statics, *tensors)
            else:
                results = apply(definition, keyset, statics, *unwrap_dead_wrappers(tensors))
            return results
        if writes:
            definition = _alive(me)
            for x, written in zip(tensors, definition.written, strict=True):
                if written and not x.is_inference():
                    torch.autograd.graph.increment_version(x)
        if keyset.raw_repr() == plain:
            return kernel(*tensors, **statics)
        return _alive(me).run_below(keyset, tensors, statics)

    return autograd


def _batch_kernel(me: Any) -> Callable[..., Any]:
    """Return the kernel of `torch.library.register_vmap`, without its reference to the op."""

    def batched(keyset: Any, *tensors: Any, **statics: Any) -> Any:
        definition = _alive(me)
        level = retrieve_current_functorch_interpreter()
        return custom_function_call_vmap_helper(level, definition.on_batch, definition.overload, *tensors, **statics)

    return batched


def _empty(*kernels: Any) -> None:
    """Release the objects that kernels hold, as torch never releases kernels."""
    for kernel in kernels:
        for cell in kernel.__closure__:
            cell.cell_contents = None


def _alive(me: Any) -> Definition:
    definition: Definition | None = me()
    if definition is None:
        raise RuntimeError(
            "a torch op of pyop was called after the last reference to it was dropped: keep what wrap returned"
        )
    return definition


def _key(size: Any) -> Any:
    """Return a key that tells torch's symbolic sizes apart; the number of a known one."""
    if not isinstance(size, torch.SymInt):
        return size
    known = size.node.maybe_as_int()
    return size.node.expr if known is None else known


def _late(late: dict[str, Any], hooks: Hooks, k: int, axis: int) -> Any:
    """Return a size that is known only after the call, one for each name."""
    outputs = hooks.outputs
    shape = None if outputs is None else outputs[k].spec.shape
    name = None if shape is None or axis >= len(shape) else getattr(shape[axis], "name", None)
    size = late.get(name) if name else None
    if size is None:
        size = torch.library.get_ctx().new_dynamic_size()
        if name:
            late[name] = size
    return size


def _forget(namespace: str, name: str) -> None:
    """Remove the op from torch.ops, which would keep it for ever; it is found again by name."""
    space = getattr(torch.ops, namespace)
    if vars(space).pop(name, None) is not None and name in getattr(space, "_dir", ()):
        space._dir.remove(name)
