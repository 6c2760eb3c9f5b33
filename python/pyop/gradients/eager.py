"""Derivatives at concrete arrays: the function runs once, on Tensors, so that its control flow sees numbers.

Inside of another transformation, or where the caller gives Tensors, results are Tensors too, and the backward pass is
recorded: derivatives of derivatives come from the same code. `Run.nested` says which.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, Value
from .._tree import TreeDef, flatten, map_leaves
from ..containers import check_rules, plain_array
from ..declare.rebuild import unflatten_each
from . import table
from .opened import check_examples

__all__ = ["Run", "forward_jacobian", "gradients", "jvp", "pullback_of", "push_forward"]


def _is_nested(*trees: Any) -> bool:
    return (_core.transformations_running() > 0 and _core.is_recording()) or any(
        type(leaf) is Tensor for leaf in flatten(trees)[0]
    )


_ours: dict[int, weakref.ref[Tensor]] = {}  # inputs of functions that were differentiated within others, by id


def _note_ours(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        key = id(tensor)
        _ours[key] = weakref.ref(tensor, lambda _, key=key: _ours.pop(key, None))  # type: ignore[misc]


def _depends_on_others(results: Sequence[Any], inputs: Sequence[Tensor]) -> bool:
    """Whether the caller's own Tensors, which the function has in its closure, lead to the results: he may ask for the
    derivatives by them, or be in a run forward on another thread."""
    if _core.forward_runs() and any(type(x) is Tensor and x._tangent is not None for x in results):
        return True
    return _core.is_recording() and any(
        id(leaf) not in _ours for leaf in _core.other_leaves(tuple(results), tuple(inputs))
    )


def _call(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function, recorded."""
    return _core.call_recorded(f, tuple(args), kwargs)


def _opened(leaf: Any, what: str) -> Tensor:
    """A Tensor that stands for an argument and for nothing else."""
    from ..autograd.linear import Alias

    scalar = type(leaf) is not Tensor and not isinstance(leaf, np.ndarray)
    if type(leaf) is not Tensor:
        leaf = plain_array(leaf, what)
    if leaf.dtype.kind not in "fc":
        raise TypeError(
            f"{what} is {leaf.dtype}{list(leaf.shape)}, and only arrays of real or complex numbers have gradients: "
            "convert it with .astype(float), or leave it out of argnums"
        )
    if type(leaf) is not Tensor:
        made = Tensor(leaf, requires_grad=True)
        made._scalar = scalar
        return made
    alias: Tensor = Alias.apply(leaf)
    return alias if alias.requires_grad else alias.requires_grad_()


def gradients(outputs: Sequence[Any], seeds: Sequence[Any], inputs: Sequence[Tensor], again: bool) -> list[Any]:
    """One gradient an input, None for zero; `again`: the backward pass is recorded."""
    pairs = [
        (y, seed)
        for y, seed in zip(outputs, seeds, strict=True)
        if type(y) is Tensor and y.requires_grad and seed is not None
    ]
    if not pairs:
        return [None] * len(inputs)
    seeds = [seed if type(seed) is Tensor else np.asarray(seed, y.dtype) for y, seed in pairs]
    return list(
        _core.run_backward(tuple([y for y, _ in pairs]), tuple(seeds), tuple(inputs), True, again, False, True, False)
    )


class Run:
    """``f(*args, **kwargs)`` on Tensors, in the place of arrays that are differentiated by.

    Parameters
    ----------
    f : callable
    args, kwargs : tuple, dict
        Arrays, numbers and Tensors.
    argnums : int or tuple of int
        The positional arguments to differentiate by.

    Attributes
    ----------
    inputs : list of Tensor
        What stands for the leaves of these arguments.
    result : tree
        What `f` returned.
    nested : bool
        Whether what comes out stays recorded.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: int | tuple[int, ...]
    ) -> None:
        self.single = isinstance(argnums, int)
        self.nested = _is_nested(args, kwargs)
        self.inputs: list[Tensor] = []
        self.trees: list[TreeDef] = []
        replaced = list(args)
        for k in (argnums,) if isinstance(argnums, int) else argnums:
            if not -len(args) <= k < len(args):
                raise TypeError(f"argnums={argnums}, but the function was called with {len(args)} positional arguments")
            leaves, tree = flatten(args[k])
            tensors = [_opened(leaf, f"argument {k}") for leaf in leaves]
            self.inputs += tensors
            self.trees.append(tree)
            replaced[k] = tree.unflatten(tensors)
        for tensor in self.inputs:
            tensor._argument = True
        self.result = _call(f, replaced, kwargs)
        check_examples(self.result)
        for tensor in self.inputs:
            tensor._argument = False
        self.nested = self.nested or _depends_on_others(flatten(self.result)[0], self.inputs)
        if self.nested:
            _note_ours(self.inputs)

    def out(self, tree: Any) -> Any:
        """What is handed to the caller: arrays, or Tensors where derivatives of it may be asked for."""
        return tree if self.nested else map_leaves(lambda x: x.numpy() if type(x) is Tensor else x, tree)

    def pull(self, outputs: Sequence[Any], seeds: Sequence[Any], again: bool | None = None) -> list[Any]:
        """One gradient an input, in its shape: arrays of their own, or Tensors."""
        again = self.nested if again is None else again
        found = gradients(outputs, seeds, self.inputs, again)
        filled = [
            Tensor(np.zeros(x.shape, x.dtype)) if g is None else g for g, x in zip(found, self.inputs, strict=True)
        ]
        if again:
            return filled
        arrays: list[Any] = []
        for g in filled:
            array = g.numpy()
            # What the engine hands out may be the seed, or one array for two arguments.
            own = array.flags.owndata and array.flags.writeable and not any(array is other for other in arrays)
            arrays.append(array if own and not any(array is seed for seed in seeds) else array.copy())
        return arrays

    def like_arguments(self, parts: list[Any]) -> Any:
        """One array an input in the containers of the arguments."""
        found = unflatten_each(self.trees, parts)
        return found[0] if self.single else tuple(found)

    def pullback(self, value: Any) -> Callable[[Any], Any]:
        """From cotangents of `value`, a part of the result, to those of the arguments; as often as wanted."""
        leaves, structure = flatten(value)
        _note_ours(self.inputs)  # functions of cotangents may be differentiated

        def pullback(ct: Any) -> Any:
            from ..autograd.batched import is_batched, level_of, one_by_one

            cts = structure.flatten_up_to(ct)
            for y, c in zip(leaves, cts, strict=True):
                check_rules("a cotangent", c)
                if c is not None and np.shape(c) != np.shape(y):
                    raise TypeError(f"a cotangent has shape {np.shape(c)}, but what it belongs to {np.shape(y)}")
            if any(is_batched(c) for c in cts):
                each = one_by_one(lambda *cs: tuple(self.pull(leaves, cs)), tuple(cts), {}, level_of(cts))
                return self.like_arguments(list(each))
            if any(isinstance(c, Value) for c in cts):
                from .pulled import pull_in_graph

                return self.like_arguments(pull_in_graph(self, leaves, cts))
            again = self.nested or _is_nested(ct)
            return self.like_arguments(self.pull(leaves, cts, again))

        return pullback

    def jacobian(self) -> Any:
        """A tree like the result of trees like the arguments, by one pass backwards an element of the result."""
        leaves, structure = flatten(self.result)
        return structure.unflatten([self.like_arguments(self._rows(y)) for y in leaves])

    def _rows(self, y: Any) -> list[Any]:
        shape = np.shape(y)
        if type(y) is not Tensor or not y.requires_grad or y.size == 0:
            dtype = y.dtype if hasattr(y, "dtype") and y.dtype.kind in "fc" else np.dtype(float)
            return [np.zeros(shape + x.shape, np.result_type(dtype, x.dtype)) for x in self.inputs]
        rows = []
        for index in np.ndindex(shape):
            seed = np.zeros(shape, y.dtype)
            seed[index] = 1
            # A cotangent is the conjugate of the derivative of a holomorphic function.
            rows.append([np.conjugate(g) if g.dtype.kind == "c" else g for g in self.pull([y], [seed])])
        return [np.reshape(np.stack([row[k] for row in rows]), shape + x.shape) for k, x in enumerate(self.inputs)]


def forward_jacobian(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: int | tuple[int, ...]
) -> Any:
    """A tree like the result of trees like the arguments, by one pass forward an element of the arguments."""
    which = (argnums,) if isinstance(argnums, int) else argnums
    found = [flatten(args[k]) for k in which]
    arguments = [
        [x if type(x) is Tensor else plain_array(x, f"argument {k}") for x in leaves]
        for k, (leaves, _) in zip(which, found, strict=True)
    ]
    structure: Any = None
    by_argument: list[list[Any]] = []  # by leaf of the arguments, and by result
    for n, leaves in enumerate(arguments):
        for position, x in enumerate(leaves):

            def of_one(x: Any, n: int = n, position: int = position) -> Any:
                trees = [tree.unflatten(xs) for xs, (_, tree) in zip(arguments, found, strict=True)]
                trees[n] = found[n][1].unflatten([*arguments[n][:position], x, *arguments[n][position + 1 :]])
                full = list(args)
                for k, tree in zip(which, trees, strict=True):
                    full[k] = tree
                return f(*full, **kwargs)

            columns = []
            for index in np.ndindex(x.shape):
                t = np.zeros(x.shape, x.dtype)
                t[index] = 1
                parts, structure = flatten(jvp(of_one, (x,), (t,))[1])
                columns.append(parts)
            if columns:
                stacked: list[Any] = [np.stack(column, axis=-1) for column in zip(*columns, strict=True)]
                by_argument.append([np.reshape(s, s.shape[:-1] + x.shape) for s in stacked])
            else:
                values, structure = flatten(f(*args, **kwargs))
                by_argument.append([np.zeros(np.shape(y) + x.shape, x.dtype) for y in values])
    rows = []
    for k in range(len(by_argument[0])):
        row = iter([columns[k] for columns in by_argument])
        trees = [tree.unflatten([next(row) for _ in leaves]) for leaves, tree in found]
        rows.append(trees[0] if isinstance(argnums, int) else tuple(trees))
    return structure.unflatten(rows)


def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """As `pyop.jvp`, at concrete arrays: in one pass forward, or two backwards inside of another one forward."""
    nested = _is_nested(primals, tangents)
    leaves, given = _pairs(primals, tangents)
    structure = flatten(primals)[1]
    shape: list[Any] = []

    def flat(*xs: Any) -> Any:
        full = iter(xs)
        result = f(*structure.unflatten([x if t is None else next(full) for x, t in zip(leaves, given, strict=True)]))
        check_examples(result)
        found, form = flatten(result)
        shape[:] = [form, [type(y) is Tensor for y in found]]
        return tuple([y if type(y) is Tensor else Tensor(plain_array(y, "a result")) for y in found])

    which = [k for k, t in enumerate(given) if t is not None]
    moved = tuple([leaves[k] for k in which])
    along = tuple([given[k] for k in which])
    if _core.forward_running() or any(type(x) is Tensor and x._tangent is not None for x in leaves):
        values, pushed = _by_two_pullbacks(flat, moved, along)
    else:
        from ..autograd.forward import jvp as push

        tensors = tuple([x if type(x) is Tensor else _as_tensor(x) for x in moved])
        before = [(k, x, x.tobytes()) for k, x in zip(which, moved, strict=True) if type(x) is np.ndarray]
        values, pushed = push(lambda *xs: _call(flat, xs, {}), tensors, along)
        for k, x, content in before:
            if x.tobytes() != content:  # by another name: reverse mode sees that where it has saved the array
                raise TypeError(
                    f"the function has written into the memory of primal {k} by another array over it, which no "
                    "tangent follows: pass a copy as one of them"
                )
    form = shape[0]
    nested = nested or _depends_on_others([*values, *pushed], ())

    def out(x: Any) -> Any:
        return x if nested or type(x) is not Tensor else x.numpy()

    return form.unflatten(list(map(out, values))), form.unflatten(list(map(out, pushed)))


def _as_tensor(x: Any) -> Tensor:
    made = Tensor(np.asarray(x))
    made._scalar = not isinstance(x, np.ndarray)
    return made


def _pairs(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    leaves: list[Any] = []
    given: list[Any] = []
    for primal, tangent in zip(primals, tangents, strict=True):
        found, tree = flatten(primal)
        parts = [None] * len(found) if tangent is None else tree.flatten_up_to(tangent)
        for x, t in zip(found, parts, strict=True):
            check_rules("a primal", x)
            check_rules("a tangent", t)
            if t is not None and np.shape(t) != np.shape(x):
                raise TypeError(f"a tangent has shape {np.shape(t)}, but its argument {np.shape(x)}")
        leaves += found
        given += parts
    return leaves, given


def _by_two_pullbacks(f: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The pullback is linear in its cotangent; its own pullback is the push forward."""
    run = Run(f, primals, {}, tuple(range(len(primals))))
    seeds = [Tensor(np.zeros(y.shape, y.dtype), requires_grad=y.dtype.kind in "fc") for y in run.result]
    _note_ours(seeds)

    def twice() -> list[Any]:
        cts = gradients(run.result, seeds, run.inputs, True)
        return gradients(cts, tangents, seeds, True)

    found = _core.call_recording(True, twice, (), {})
    zeros = [Tensor(np.zeros(y.shape, y.dtype)) for y in run.result]
    return run.result, tuple([z if t is None else t for t, z in zip(found, zeros, strict=True)])


# --- for rules of functions that are made of others


def pullback_of(
    f: Callable[..., Any], argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> table.Pullback:
    """As `table.Rule.vjp`, of the function itself."""
    leaves = table.leaves(args, kwargs)
    nested = any(type(leaf) is Tensor for leaf in leaves)
    opened = [_opened(leaves[k], f"argument {k}") for k in argnums]
    _note_ours(opened)
    new_args, new_kwargs = table.replaced(args, kwargs, dict(zip(argnums, opened, strict=True)))
    result = _call(f, new_args, new_kwargs)

    def pullback(ct: Any) -> tuple[Any, ...]:
        outputs = flatten(result)[0]
        cts = list(ct) if isinstance(ct, (tuple, list)) else [ct]
        again = nested or any(type(c) is Tensor for c in cts)
        found = gradients(outputs, cts, opened, again)
        return tuple([g if g is None or again else g.numpy() for g in found])

    return pullback


def push_forward(
    f: Callable[..., Any],
    argnums: tuple[int, ...],
    tangents: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """As `table.Rule.jvp`, of the function itself."""
    leaves = table.leaves(args, kwargs)

    def of_moving(*xs: Any) -> Any:
        new_args, new_kwargs = table.replaced(args, kwargs, dict(zip(argnums, xs, strict=True)))
        return f(*new_args, **new_kwargs)

    return _bare(jvp(of_moving, tuple([leaves[k] for k in argnums]), tangents)[1], leaves, tangents)


def _bare(tree: Any, *given: Any) -> Any:
    """Arrays where no Tensor came in."""
    if any(type(x) is Tensor for xs in given for x in xs):
        return tree
    return map_leaves(lambda x: x.numpy() if type(x) is Tensor else x, tree)
