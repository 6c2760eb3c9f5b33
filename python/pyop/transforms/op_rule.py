"""Build the gradient of an op: what `@op.vjp`, `@op.jvp`, `@op.jac` and `grad=` declare, and the rule from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._core import Op, Tensor, Value
from .._tree import TreeDef, flatten, leaf_types
from ..autograd.arrays import spec_of
from ..declare.abstract import AbstractRule, AndContext
from ..declare.contracts import new_contract
from ..declare.parameters import Parameters, check_by_name
from ..declare.rebuild import unflatten_each
from ..declare.references import by_path, op_of_gradient
from ..declare.signature import Signature
from ..declare.spec import Spec
from ..gradients import differences, saved
from ..gradients.table import NoRule, Pullback, Rule
from ..gradients.unbroadcast import conj, dtype_of, fit_dtype, shape_of
from ..graph import calls
from .op_calls import Backward, Forward, JacobianOf

__all__ = ["OpGradient", "OpRule"]

_ARRAYS = frozenset((np.ndarray,))
_KEYWORDS = ("saved", "needs", "out")
_CONTEXT = Spec(np.int64, (1,))


class OpGradient:
    """Hold what an op declares about its derivatives. Its Contract, which every node of a graph has, holds this."""

    saving: tuple[Any, Any, Spec] | None = None  # read by the core, which adds the node

    def __init__(self, op: Op) -> None:
        self.name = op.name
        self.fn: Callable[..., Any] = op.__wrapped__
        self.parameters = op.parameters
        inputs, outputs = op.spec.inputs, op.spec.outputs
        self.in_trees: tuple[TreeDef, ...] | None = None
        if inputs is not None and not all(isinstance(part, Spec) for part in inputs):
            self.in_trees = tuple(flatten(part)[1] for part in inputs)
        self.out_tree: TreeDef | None = None if outputs is None or isinstance(outputs, Spec) else flatten(outputs)[1]
        n_results = vars(op).get("_n_results", 1)
        if outputs is None and n_results > 1:
            self.out_tree = flatten((None,) * n_results)[1]
        self.out_specs: list[Any] | None = None if outputs is None else flatten(outputs)[0]
        self.in_specs: list[Any] | None = None if inputs is None else flatten(inputs)[0]
        self.cast: str = op.spec.cast
        self.abstract: AbstractRule | None = vars(op).get("_abstract_rule")
        self.gufunc = bool(getattr(op.spec, "gufunc", False))
        self.vjp: Op | None = None
        self.vjp_fn: Callable[..., Any] | None = None
        self.vjp_wants: tuple[str, ...] = ()
        self.jvp_fn: Callable[..., Any] | None = None
        self.jvp_wants: tuple[str, ...] = ()
        self.jacs: dict[tuple[int, int], tuple[Callable[..., Any], Any]] = {}
        self.fallback: str | None = None
        self.traced: dict[Any, Any] = {}  # calls of rules that are known to work on Values, with the specs
        self.calls: dict[Any, Backward] = {}  # of the rule, without static arguments; for all of so many by the number
        self.of_arrays = False
        self.rule = OpRule(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle by reference to the op that it belongs to, where an import path leads to that."""
        op = by_path(op_of_gradient(self))
        return object.__reduce_ex__(self, protocol) if op is None else (op_gradient_of, (op,))

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self) | {"traced": {}, "calls": {}}
        del state["rule"]
        if self.saving is not None:
            state["saving"] = ()  # holds a contract that holds this
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.abstract, self.cast = None, "no"  # states of before these were kept
        self.calls = {}
        vars(self).update(state)
        self.rule = OpRule(self)
        self.settle()
        if self.saving is not None:
            self.keep_residuals()

    def keep_residuals(self) -> None:
        """Enable running the op with the context among its results."""
        declared = Signature.make(
            inputs=None if self.in_specs is None else list(self.in_specs),
            outputs=None if self.out_specs is None else (*self.out_specs, _CONTEXT),
            parameters=(),
        ).taking(self.cast)
        abstract = None if self.abstract is None else AndContext(self.abstract, _CONTEXT)
        self.saving = (self.with_context, new_contract(declared, abstract, gradient=self), _CONTEXT)

    def set_abstract(self, abstract: AbstractRule) -> None:
        """Set an abstract rule that computes the specs of the results."""
        self.abstract = abstract
        self.settle()
        if self.saving is not None:
            self.keep_residuals()

    @property
    def _pyop_gradient_rule(self) -> OpRule:
        return self.rule

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def saves(self) -> bool:
        return "saved" in self.vjp_wants

    def wants(self, rule: Callable[..., Any], kind: str) -> tuple[str, ...]:
        """Return the keyword-only parameters of a rule that are passed to it; statics of the op among them."""
        try:
            parameters = inspect.signature(rule).parameters.values()
        except (TypeError, ValueError):
            return ()
        wanted = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        allowed = _KEYWORDS if kind == "vjp" else ("out",)
        required = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
        unknown = required - set(allowed) - set(self.statics())
        if unknown:
            raise TypeError(
                f"the {kind} rule of op {self.name!r} takes {', '.join(sorted(unknown))}=, which is never passed: "
                f"there are {', '.join(allowed)}, and the op's static parameters"
            )
        check_by_name(rule, f"the {kind} rule of op {self.name!r}", self.statics())
        return wanted

    def keywords(self, wants: tuple[str, ...], statics: dict[str, Any]) -> dict[str, Any]:
        """Return the static parameters that a rule takes: those of the call, and the op's defaults for the rest."""
        if not wants:
            return {}
        values = {key: statics[key] for key in wants if key in statics}
        missing = [key for key in wants if key not in values and key not in _KEYWORDS]
        if missing:
            parameters = inspect.signature(self.fn).parameters
            values |= {
                key: parameters[key].default
                for key in missing
                if key in parameters and parameters[key].default is not inspect.Parameter.empty
            }
        return values

    def settle(self) -> None:
        """Update whether the op returns one array for arrays, after a change of its declaration.

        Its vjp rule must then take no more than these and a cotangent.
        """
        plain = self.vjp_fn is not None and not self.vjp_wants and self.abstract is None
        self.of_arrays = plain and self.out_specs is not None and self.out_tree is None and self.in_trees is None

    def backward(self, argnums: tuple[int, ...], n_out: int, n_in: int, statics: dict[str, Any]) -> Backward:
        """Return the call of the vjp rule for these arguments."""
        if statics:
            return Backward(self, argnums, n_out, n_in, statics)
        key = argnums, n_out, n_in
        call = self.calls.get(key)
        if call is None:
            call = self.calls[key] = Backward(self, argnums, n_out, n_in, {})
        return call

    def backward_for_all(self, n: int) -> Backward:
        """Return the call of the vjp rule of an op of `n` arrays that returns one."""
        call = self.calls.get(n)
        if call is None:
            call = self.calls[n] = self.backward(tuple(range(n)), 1, n, {})
        return call

    def statics(self) -> tuple[str, ...]:
        try:
            parameters = inspect.signature(self.fn).parameters.values()
        except (TypeError, ValueError):
            return ()
        behind = {name for name in Parameters.of(self.fn).arrays if name not in self.parameters}
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.name in behind)

    def position(self, wrt: int | str) -> int:
        """Return the position of the argument that a rule is for; ValueError if there is none of that name."""
        if isinstance(wrt, str):
            if wrt not in self.parameters:
                raise ValueError(f"wrt={wrt!r} is not a parameter of op {self.name!r}, which has {self.parameters}")
            return self.parameters.index(wrt)
        return wrt

    def results_of(self, arrays: Sequence[Any], statics: dict[str, Any]) -> TreeDef | None:
        """Return the structure of the op's result for flat arguments; None for a single array."""
        if self.abstract is None:
            return self.out_tree
        tree = self.abstract.structure([spec_of(x) for x in arrays], statics)
        return None if tree.is_leaf else tree

    def unpack_arguments(self, arrays: Any) -> tuple[Any, ...]:
        """Return flat arrays in the containers that the op takes."""
        if self.in_trees is None:
            return tuple(arrays)
        return tuple(unflatten_each(self.in_trees, arrays))

    def argument_of(self, leaf: int) -> int:
        """Return the position of the argument that a flat array belongs to."""
        if self.in_trees is None:
            return leaf
        for k, tree in enumerate(self.in_trees):
            if leaf < tree.num_leaves:
                return k
            leaf -= tree.num_leaves
        raise IndexError(leaf)

    def with_context(self, *arrays: Any, **statics: Any) -> tuple[Any, ...]:
        """Return the op's flat results and the context, as in a graph when its rule takes residuals."""
        result, residuals = saved.collect(self.fn, self.name, self.unpack_arguments(arrays), statics)
        form = self.results_of(arrays, statics)
        outs = [result] if form is None else form.flatten_up_to(result)
        return (*outs, saved.Context(residuals).array())


def op_gradient_of(op: Op) -> Any:
    """Return the gradient rules that an op has."""
    return op.contract.gradient


class OpRule(Rule):
    """Differentiate an op by its `OpGradient`: a vjp or jvp, Jacobians, or differences."""

    def __init__(self, gradient: OpGradient) -> None:
        super().__init__(gradient)
        self.gradient = gradient

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        trees = self.gradient.in_trees
        if not isinstance(parameter, int) or (trees is not None and not trees[parameter].is_leaf):
            return ""
        return "array"

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        g = self.gradient
        if type(ans) is np.ndarray and not kwargs and g.of_arrays and _ARRAYS.issuperset(map(type, args)):
            call = g.backward(argnums, 1, len(args), {})
            return lambda ct: (
                _as_tuple(call(ct, *args)) if type(ct) is np.ndarray else self._pull(argnums, ans, args, kwargs)(ct)
            )
        return self._pull(argnums, ans, args, kwargs)

    def _pull(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        g = self.gradient
        flat = flatten(args)[0]
        outs, context = self._split(ans, flat, kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            cts = list(flatten(ct)[0])[: len(outs)]
            if g.vjp_fn is not None:
                return self._by_vjp(argnums, cts, flat, outs, context, kwargs)
            if g.jacs:
                return tuple([self._by_jacobians(k, cts, flat, outs, kwargs) for k in argnums])
            if g.fallback is not None:
                full = [np.zeros_like(y) if c is None else c for c, y in zip(cts, outs, strict=True)]
                call = differences.PullBack(g.fn, g.name, g.in_trees, g.fallback, argnums, len(outs), kwargs)
                return _as_tuple(_apply(call, (*full, *flat), [flat[k] for k in argnums], f"{g.name}_fd"))
            return self._missing("reverse mode", "vjp")

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        g = self.gradient
        flat = flatten(args)[0]
        outs, context = self._split(ans, flat, kwargs)
        given = dict(zip(argnums, tangents, strict=True))
        if g.jvp_fn is not None or (g.fallback is not None and not g.jacs):
            full = [given.get(k) for k in range(len(flat))]
            full = [np.zeros_like(x) if t is None else t for t, x in zip(full, flat, strict=True)]
            if g.jvp_fn is not None:
                extra = tuple(outs) if "out" in g.jvp_wants else ()
                call: Any = Forward(g, len(flat), kwargs)
                moved = _as_tuple(_apply(call, (*full, *flat, *extra), outs, f"{g.name}_jvp"))
            else:
                call = differences.PushForward(g.fn, g.name, g.in_trees, g.fallback or "fd", kwargs)
                moved = _as_tuple(_apply(call, (*full, *flat), outs, f"{g.name}_fd"))
        elif g.jacs:
            moved = tuple([self._pushed(j, given, flat, outs, kwargs) for j in range(len(outs))])
        else:
            self._missing("forward mode", "jvp")
        moved = (*moved, None) if context is not None else moved
        return moved if isinstance(ans, (tuple, list)) else moved[0]

    def _split(self, ans: Any, flat: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
        """Return the results, and the context if the call has returned one."""
        leaves = flatten(ans)[0]
        count = len(leaves)
        if self.gradient.saves:
            form = self.gradient.results_of(flat, kwargs)
            count = 1 if form is None else form.num_leaves
        return leaves[:count], (leaves[count] if len(leaves) > count else None)

    def _missing(self, mode: str, method: str) -> NoReturn:
        name = self.gradient.name
        raise NoRule(
            f"op {name!r} has no gradient rule for {mode}: give it one with @{name}.{method} or @{name}.jac, or "
            'declare it with grad="fd"'
        )

    def _by_vjp(self, argnums: Any, cts: Any, flat: Any, outs: Any, context: Any, kwargs: Any) -> tuple[Any, ...]:
        g = self.gradient
        full = [np.zeros_like(y) if c is None else c for c, y in zip(cts, outs, strict=True)]
        extra = tuple(outs) if "out" in g.vjp_wants else ()
        if g.saves:
            if context is None:  # called without one: the forward function is run again for its residuals
                again = _apply(g.with_context, tuple(flat), [*outs, g.saving[2]], g.name, kwargs)  # type: ignore[index]
                context = again[-1]
            extra += (context,)
        which = argnums
        if g.vjp is not None and g.vjp.contract.gradient is not None:
            which = tuple(k for k, x in enumerate(flat) if (dtype_of(x) or np.dtype(float)).kind in "fc")
        gradients = _as_tuple(
            _apply(
                g.backward(which, len(outs), len(flat), kwargs),
                (*full, *flat, *extra),
                [flat[k] for k in which],
                f"{g.name}_vjp",
            )
        )
        return gradients if which is argnums else tuple([gradients[which.index(k)] for k in argnums])

    def _jacobian(self, j: int, k: int, flat: Any, outs: Any, kwargs: Any) -> tuple[Any, Any]:
        rule = self.gradient.jacs.get((j, self.gradient.argument_of(k)))
        if rule is None:
            return None, None
        fn, structure = rule
        y, x = outs[j], flat[k]
        shapes = shape_of(y), shape_of(x)
        shape: Any = None
        if structure == "dense" and shapes[0] is not None and shapes[1] is not None:
            shape = shapes[0] + shapes[1]
        elif structure == "diagonal":
            shape = shapes[0]
        elif not isinstance(structure, str):
            shape = (len(structure[0]),)
        call = JacobianOf(self.gradient, fn, kwargs)
        dtype = dtype_of(y)
        return _apply(call, tuple(flat), [Spec(dtype, shape)], f"{self.gradient.name}_jac"), structure

    def _by_jacobians(self, k: int, cts: Any, flat: Any, outs: Any, kwargs: Any) -> Any:
        total = None
        known = False
        for j, ct in enumerate(cts):
            jacobian, structure = self._jacobian(j, k, flat, outs, kwargs)
            known = known or jacobian is not None
            if jacobian is None or ct is None:
                continue
            part = _transposed_times(jacobian, structure, ct, flat[k])
            total = part if total is None else total + part
        if not known:
            name, argument = self.gradient.name, self.gradient.argument_of(k)
            raise NoRule(f"op {name!r} has no Jacobian for argument {argument}: declare it with @{name}.jac(wrt=...)")
        return fit_dtype(total, flat[k])

    def _pushed(self, j: int, given: Any, flat: Any, outs: Any, kwargs: Any) -> Any:
        total = None
        for k, t in given.items():
            jacobian, structure = self._jacobian(j, k, flat, outs, kwargs)
            if jacobian is None:
                continue
            if structure == "dense":
                part = np.tensordot(jacobian, t, len(shape_of(t) or ()))
            elif structure == "diagonal":
                part = jacobian * t
            else:
                from ..gradients.adjoints import put

                rows, columns = (np.asarray(part) for part in structure)
                part = put(jacobian * np.ravel(t)[columns], np.ravel(outs[j]), rows)
                part = np.reshape(part, np.shape(outs[j]))
            total = part if total is None else total + part
        return total


def _transposed_times(jacobian: Any, structure: Any, ct: Any, x: Any) -> Any:
    if structure == "dense":
        return np.tensordot(ct, conj(jacobian), len(shape_of(ct) or ()))
    if structure == "diagonal":
        return ct * conj(jacobian)
    from ..gradients.adjoints import put, reshape_like

    rows, columns = (np.asarray(part) for part in structure)
    return reshape_like(put(conj(jacobian) * np.ravel(ct)[rows], np.ravel(x), columns), x)


def _apply(fn: Any, arrays: tuple[Any, ...], like: list[Any], name: str, kwargs: Any = None) -> Any:
    """Call `fn`: as a node if Values are among the arrays, else at once.

    The results have the specs of `like`, or those of its arrays.
    """
    kinds = leaf_types(arrays)
    if Value in kinds:
        specs = [x if isinstance(x, Spec) else _spec_like(x) for x in like]
        return calls.apply(fn, arrays, kwargs or {}, specs[0] if len(specs) == 1 else tuple(specs), name=name)
    if Tensor in kinds:
        from ..autograd.op_calls import call_rule

        return call_rule(fn, arrays, kwargs or {})
    return fn(*arrays, **(kwargs or {}))


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _spec_like(x: Any) -> Spec:
    if isinstance(x, Value):
        dtype = x.dtype
        return Spec(dtype if dtype is None or dtype.kind in "fc" else np.float64, x.spec.shape)
    return spec_of(x)
