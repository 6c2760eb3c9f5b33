"""Define the callables of the nodes for gradient rules of ops: each calls a user's rule and checks its result.

They compare by what they do, so that equal nodes are merged, and each has a rule for the next derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core import Tensor, Value, read_only
from ..autograd.arrays import spec_of
from ..declare.rebuild import MergedByValue
from ..gradients.saved import residuals_of
from ..gradients.table import NoRule, Rule
from ..gradients.unbroadcast import fit_dtype, shape_of
from .composite import Composite

if TYPE_CHECKING:
    from .op_rule import OpGradient

__all__ = ["Backward", "Forward", "JacobianOf"]


class _Call(MergedByValue):
    def __init__(self, gradient: OpGradient, *key: Any, statics: dict[str, Any]) -> None:
        self.gradient = gradient
        self.statics = statics
        self._key = (type(self), gradient, *key, *((k, id(v)) for k, v in statics.items()))
        self.__name__ = f"{gradient.name}_{type(self).__name__.lower()}"

    def __call__(self, *arrays: Any) -> Any:
        raise NotImplementedError

    @property
    def _pyop_gradient_rule(self) -> Rule:
        """Return the rule made of the user's rule on Values, if that is written in functions that take them."""
        return Composite(self, self._traced)

    def _traced(self, *arrays: Any) -> Any:
        try:
            if any(type(x) is Tensor for x in arrays):
                self._trace(arrays)
            return self(*arrays)
        except NoRule:
            raise
        except Exception as error:
            name = self.gradient.name
            raise NoRule(
                f"the second derivative of op {name!r}: its rule is not written in functions that work on Values "
                f"({type(error).__name__}: {error}); give the rule a rule of its own: what @{name}.vjp returns is an "
                "op, and has a .vjp too"
            ) from error

    def _trace(self, arrays: tuple[Any, ...]) -> None:
        """Raise if the rule takes numbers out of its arguments (``x.tolist()``).

        Tensors would allow that, and the derivative would be lost.
        """
        from ..tracing.trace import trace

        specs = tuple(map(spec_of, arrays))
        if self.gradient.traced.get(self) != specs:
            trace(lambda *xs: self(*xs), *specs)
            self.gradient.traced[self] = specs


def _called(rule: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return what a rule returns for arrays that other calls have too.

    They are read-only: if the rule wrote into them (``ct *= 2``), it would change the derivatives of those calls.
    """
    try:
        return rule(*args, **keywords)
    except ValueError as error:
        _advise(rule, error)
        raise


def _advise(rule: Any, error: ValueError) -> None:
    if "read-only" in str(error):
        error.add_note(
            f"the rule {getattr(rule, '__name__', rule)!r} is given arrays that others read too: write "
            "ct = ct * b, which makes a new array, in place of ct *= b, or change a copy (ct.copy())"
        )


def _packed(form: Any, outs: Any) -> Any:
    """Return flat results in the container that the op returns."""
    return outs[0] if form is None else form.unflatten(list(outs))


class Backward(_Call):
    """Compute cotangents of arguments from those of results, by the op's vjp rule."""

    def __init__(
        self, gradient: OpGradient, argnums: tuple[int, ...], n_out: int, n_in: int, statics: dict[str, Any]
    ) -> None:
        super().__init__(gradient, argnums, n_out, n_in, statics=statics)
        self.argnums = argnums
        self.n_out = n_out
        self.n_in = n_in
        self._one = n_in == 1 and argnums == (0,)

    def __call__(self, *arrays: Any) -> Any:
        g = self.gradient
        assert g.vjp_fn is not None
        arrays = read_only(arrays)
        if g.of_arrays:
            try:
                cts = g.vjp_fn(*arrays)
            except ValueError as error:
                _advise(g.vjp_fn, error)
                raise
            if self._one and type(cts) is np.ndarray and g.in_trees is None:
                # The commonest, which `_checked` would say the same of.
                like = arrays[self.n_out]
                if type(like) is np.ndarray and cts.dtype is like.dtype and cts.shape == like.shape:
                    return cts
            inputs = arrays[self.n_out : self.n_out + self.n_in]
        else:
            inputs = arrays[self.n_out : self.n_out + self.n_in]
            cts = self._called_with(g, inputs, arrays)
        parts = cts if type(cts) is tuple and g.in_trees is None and len(cts) == self.n_in else self._flat(cts)
        if len(self.argnums) == 1:
            (k,) = self.argnums
            return self._checked(parts[k], inputs[k], k)
        return tuple([self._checked(parts[k], inputs[k], k) for k in self.argnums])

    def _called_with(self, g: OpGradient, inputs: tuple[Any, ...], arrays: tuple[Any, ...]) -> Any:
        """Call the rule with containers, and with the keywords that it takes."""
        rest = arrays[self.n_out + self.n_in :]
        keywords = g.keywords(g.vjp_wants, self.statics)
        form = g.results_of(inputs, self.statics)
        if "out" in g.vjp_wants:
            keywords["out"] = _packed(form, rest[: self.n_out])
        if "needs" in g.vjp_wants:
            count = self.n_in if g.in_trees is None else len(g.in_trees)
            needed = {g.argument_of(k) for k in self.argnums}
            keywords["needs"] = tuple(k in needed for k in range(count))
        if g.saves:
            keywords["saved"] = residuals_of(rest[-1], g.name)
        return _called(g.vjp_fn, (_packed(form, arrays[: self.n_out]), *g.unpack_arguments(inputs)), keywords)

    def _flat(self, found: Any) -> list[Any]:
        g = self.gradient
        count = self.n_in if g.in_trees is None else len(g.in_trees)
        if count == 1 and not (isinstance(found, tuple) and len(found) == 1):
            found = (found,)
        if not isinstance(found, (tuple, list)) or len(found) != count:
            got = f"{len(found)} values" if isinstance(found, (tuple, list)) else type(found).__name__
            raise TypeError(
                f"the vjp rule of op {g.name!r} must return {count} cotangents, one for each argument, got {got}"
            )
        if g.in_trees is None:
            return list(found)
        parts: list[Any] = []
        for tree, part in zip(g.in_trees, found, strict=True):
            parts += [None] * tree.num_leaves if part is None else tree.flatten_up_to(part)
        return parts

    def _checked(self, part: Any, like: Any, k: int) -> Any:
        if part is None:
            return np.zeros_like(like)
        if type(part) is type(like) is np.ndarray and part.dtype is like.dtype and part.shape == like.shape:
            return part
        if not hasattr(part, "shape"):
            part = np.asarray(part)
        have, want = shape_of(part), shape_of(like)
        if have != want and not isinstance(part, Value):
            g = self.gradient
            argument = g.argument_of(k)
            label = g.parameters[argument] if argument < len(g.parameters) else argument
            raise ValueError(
                f"the vjp rule of op {g.name!r} returned an array of shape {have} for argument {label!r}, "
                f"which has shape {want}"
            )
        return fit_dtype(part, like)

    @property
    def _pyop_gradient_rule(self) -> Rule:
        g = self.gradient
        if g.vjp is not None and g.vjp.contract.gradient is not None:
            return _OfRule(self, g.vjp.contract.gradient.rule)
        if g.saves:
            raise NoRule(
                f"the second derivative of op {g.name!r}: its rule reads residuals, whose derivative is not known; "
                f"give the rule a rule of its own: what @{g.name}.vjp returns is an op, and has a .vjp too"
            )
        return super()._pyop_gradient_rule


class _OfRule(Rule):
    """Differentiate a rule: an op of the cotangents and the arguments, without the other inputs."""

    def __init__(self, call: Backward, rule: Rule) -> None:
        super().__init__(call)
        self.rule = rule
        self.count = call.n_out + call.n_in

    def vjp(self, argnums: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # A result, and residuals, are functions of the arguments: the rule accounts for them.
        inner = tuple(k for k in argnums if k < self.count)
        pull = self.rule.vjp(inner, ans, args[: self.count], kwargs)

        def pullback(ct: Any) -> tuple[Any, ...]:
            gradients = dict(zip(inner, pull(ct), strict=True))
            return tuple([gradients.get(k) for k in argnums])

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        pairs = [(k, t) for k, t in zip(argnums, tangents, strict=True) if k < self.count]
        inner, given = tuple(k for k, _ in pairs), tuple(t for _, t in pairs)
        return self.rule.jvp(inner, given, ans, args[: self.count], kwargs)


class Forward(_Call):
    """Compute tangents of results from those of arguments, by the op's jvp rule."""

    def __init__(self, gradient: OpGradient, n_in: int, statics: dict[str, Any]) -> None:
        super().__init__(gradient, n_in, statics=statics)
        self.n_in = n_in

    def __call__(self, *arrays: Any) -> Any:
        g = self.gradient
        assert g.jvp_fn is not None
        arrays = read_only(arrays)
        keywords = g.keywords(g.jvp_wants, self.statics)
        form = g.results_of(arrays[self.n_in : 2 * self.n_in], self.statics)
        if "out" in g.jvp_wants:
            keywords["out"] = _packed(form, arrays[2 * self.n_in :])
        tangents = g.unpack_arguments(arrays[: self.n_in])
        moved = _called(g.jvp_fn, (*tangents, *g.unpack_arguments(arrays[self.n_in : 2 * self.n_in])), keywords)
        if form is None:
            return moved if isinstance(moved, (Value, Tensor)) else np.asarray(moved)
        try:
            parts = form.flatten_up_to(moved)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"the jvp rule of op {g.name!r} must return tangents in the containers of the op's results: {error}"
            ) from error
        parts = [x if isinstance(x, (Value, Tensor)) or x is None else np.asarray(x) for x in parts]
        return parts[0] if len(parts) == 1 else tuple(parts)


class JacobianOf(_Call):
    """Compute a Jacobian of an op, by a function of its arguments."""

    def __init__(self, gradient: OpGradient, fn: Any, statics: dict[str, Any]) -> None:
        super().__init__(gradient, fn, statics=statics)
        self.fn = fn
        self.wants = gradient.wants(fn, "jac")

    def __call__(self, *arrays: Any) -> Any:
        keywords = self.gradient.keywords(self.wants, self.statics)
        jacobian = self.fn(*self.gradient.unpack_arguments(arrays), **keywords)
        return jacobian if isinstance(jacobian, (Value, Tensor)) else np.asarray(jacobian)
