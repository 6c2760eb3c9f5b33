"""Turn functions that pyop compiles into functions of JAX: a plan for each dtype and shape of the arguments.

Where no step of the plan calls Python, XLA calls the plan itself (`jax_native.py`); else by a callback. The gradient is
such a function, too, of the cotangents and the arguments, made when JAX asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._core import CompiledFunction, Plan
from ..declare.infer import infer_outputs
from ..declare.spec import Spec
from ..tracing.trace import trace
from ..transforms.transforms import vjp
from .jax_arrays import arrays_of, checked, is_array, is_traced, real, results_like, run_eagerly
from .jax_native import calls_python, native_call, on_cpu, ordered_call, python_call

__all__ = ["JaxFunction", "JaxPlan"]


class JaxFunction:
    """Call a compiled function or a graph's plan from JAX; `pyop.interop.jax.wrap` makes them.

    Attributes
    ----------
    __wrapped__ : callable

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.jax import wrap
    >>> wrap(pyop.compile(np.sin))(np.zeros(2, "float32")).tolist()
    [0.0, 0.0]
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.__wrapped__: Any = function
        self.__name__ = name
        self._function = function.__wrapped__ if isinstance(function, CompiledFunction) else function
        self._lock = threading.Lock()
        self._made: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__}>"

    def __reduce__(self) -> Any:
        return type(self), (self.__wrapped__, self.__name__)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it with arrays and trees of arrays; what is no array is static."""
        leaves, tree = jax.tree_util.tree_flatten((arguments, named))
        arrays = [x for x in leaves if is_array(x)]
        statics = tuple([(k, type(x), x) for k, x in enumerate(leaves) if not is_array(x)])
        key = (tree, statics, *[(x.shape, x.dtype) for x in arrays], jax.config.jax_enable_x64)
        made = self._made.get(key)
        if made is None:
            names = [jax.tree_util.keystr(path) for path, x in _with_paths(arguments, named) if is_array(x)]
            checked(repr(self), names, arrays)
            with self._lock:
                made = self._made.get(key)
            if made is None:
                made = self._made.setdefault(key, self._make(tree, leaves, arrays))
        call, out = made
        results = call(*arrays) if is_traced(arrays) else run_eagerly(call, arrays)
        return jax.tree_util.tree_unflatten(out, results)

    def _make(self, tree: Any, leaves: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, Any]:
        static = [None if is_array(x) else x for x in leaves]
        places = [k for k, x in enumerate(leaves) if is_array(x)]
        out: list[Any] = []

        def flat(*given: Any) -> tuple[Any, ...]:
            full = list(static)
            for k, x in zip(places, given, strict=True):
                full[k] = x
            args, named = jax.tree_util.tree_unflatten(tree, full)
            results, form = jax.tree_util.tree_flatten(self._function(*args, **named))
            out[:] = [form]
            return tuple(results)

        specs = [Spec(x.dtype, x.shape) for x in arrays]
        flat.__name__ = flat.__qualname__ = self.__name__
        plan = trace(flat, *specs, name=self.__name__).compile()
        if plan._writes:
            raise TypeError(
                f"{self!r} writes into its argument {plan._writes[0]}, and JAX's arrays are read only: return what the "
                "array holds in the end instead"
            )
        call = _called(self, plan, [x.dtype for x in arrays], results_like(repr(self), _kinds(plan)))
        return _differentiable(self.__name__, flat, call, arrays), out[0]


class JaxPlan(JaxFunction):
    """Call a plan from JAX, with its own dtypes and shapes, without a gradient.

    Where a size has a name, JAX supplies it, and the call passes through Python.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.interop.jax import wrap
    >>> wrap(pyop.trace(np.sin, "float32[2]").compile())(np.zeros(2, "float32")).tolist()
    [0.0, 0.0]
    """

    def _make(self, tree: Any, leaves: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, Any]:
        plan: Plan = self.__wrapped__
        inputs, outputs, form = _arrays_of(plan, arrays)
        wanted = [(np.dtype(dtype), shape) for _, dtype, shape in inputs]
        if (
            form not in ("single", "tuple")
            or [(x.dtype, x.shape) for x in arrays] != wanted
            or tree.num_leaves != len(arrays)
        ):
            told = ", ".join(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in inputs)
            given = ", ".join(f"{x.dtype}{list(x.shape)}" for x in arrays)
            raise TypeError(f"{self!r} takes {told} and returns an array or a tuple; it was called with {given}")
        results = results_like(repr(self), [(np.dtype(dtype), shape) for _, dtype, shape in outputs])
        treedef = jax.tree_util.tree_structure(0 if form == "single" else tuple(range(len(outputs))))
        return jax.jit(_called(self, plan, [x.dtype for x in arrays], results)), treedef


def _arrays_of(plan: Plan, given: Sequence[Any]) -> tuple[list[Any], list[Any], str]:
    """Return dtypes and shapes of a plan's arguments and results, as `Plan._arrays`, and its form.

    They are those for arrays of these sizes, where sizes of the plan have names.

    Raises
    ------
    ValueError
        The arrays are not what is declared.
    """
    _, fetches, feeds, form = plan._made_of[:4]
    if form > 1 or len(given) != len(feeds) or all(map(_is_sized, (*feeds, *fetches))):
        inputs, outputs, told = plan._arrays
        return list(inputs), list(outputs), told
    specs = [Spec(x.dtype, x.shape) for x in given]
    like = [-1] * len(fetches)
    results = infer_outputs(
        [feed.spec for feed in feeds],
        [value.spec for value in fetches],
        like,
        False,
        specs,
        lambda k: f"input {feeds[k].name!r} of {plan!r}",
    )
    inputs = [(feed.name, x.dtype, x.shape) for feed, x in zip(feeds, given, strict=True)]
    return inputs, [(value.name, r.dtype, r.shape) for value, r in zip(fetches, results, strict=True)], _FORMS[form]


_FORMS = ("single", "tuple")


def _is_sized(value: Any) -> bool:
    return value.shape is not None and all(type(size) is int for size in value.shape)


def _with_paths(arguments: Any, named: Any) -> list[tuple[Any, Any]]:
    leaves: list[tuple[Any, Any]] = jax.tree_util.tree_flatten_with_path((arguments, named))[0]
    return leaves


def _kinds(plan: Plan) -> list[tuple[Any, Any]]:
    """Return dtypes and shapes of the results, known if all sizes of the arguments are."""
    specs = [value.spec for value in plan._made_of[1]]
    return [
        (s.dtype if isinstance(s.dtype, np.dtype) else None, s.shape if s.shape is None else _sizes(s.shape))
        for s in specs
    ]


def _sizes(shape: Any) -> tuple[Any, ...]:
    return tuple(size if isinstance(size, int) else None for size in shape)


def _called(of: JaxFunction, plan: Plan, dtypes: Sequence[Any], results: list[Any]) -> Callable[..., Any]:
    """Return a call of the plan on flat arrays of JAX: by XLA where possible, else by a callback."""
    if on_cpu() and not calls_python(plan):
        try:
            return native_call(plan, results, of)
        except TypeError:
            pass  # a dtype that C has not, such as bfloat16

    def call(arrays: Sequence[Any]) -> Any:
        outputs = plan(*arrays)
        return arrays_of(repr(of), outputs if isinstance(outputs, (tuple, list)) else (outputs,), results)

    if any(node.stateful for node in plan.nodes):
        return ordered_call(call, results)
    return python_call(call, dtypes, results, "sequential")


def _differentiable(name: str, flat: Callable[..., Any], call: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """Return the call with its gradient, which pyop derives when it is asked for."""
    which = [k for k, x in enumerate(arrays) if real(x.dtype)]
    if not which:
        return jax.jit(call)
    made: list[Any] = []

    def backward(cotangents: Any, given: Any) -> Any:
        def moving(*values: Any) -> Any:
            full = list(given)
            for k, x in zip(which, values, strict=True):
                full[k] = x
            results = flat(*full)
            return tuple([y for y in results if np.dtype(y.dtype).kind in "fc"])

        # pyop's gradient of a complex number is the conjugate of JAX's.
        pull = vjp(moving, *[given[k] for k in which])[1]
        gradients = pull(tuple([np.conj(c) if np.dtype(c.dtype).kind == "c" else c for c in cotangents]))
        return [np.conj(g) if np.dtype(g.dtype).kind == "c" else g for g in gradients]

    def forward(*given: Any) -> Any:
        return with_gradient(*given), given  # itself, for the derivative of the gradient

    def reverse(given: Any, cotangents: Any) -> Any:
        if not made:
            made.append(JaxFunction(backward, f"{name}_vjp"))
        raw_gradients = made[0]([c for c in cotangents if c.dtype != jax.dtypes.float0], list(given))
        gradients: list[Any] = [None] * len(given)
        for k, g in zip(which, raw_gradients, strict=True):
            gradients[k] = g
        return tuple(gradients)

    with_gradient = jax.custom_vjp(lambda *given: call(*given))
    with_gradient.defvjp(forward, reverse)
    return jax.jit(with_gradient)
