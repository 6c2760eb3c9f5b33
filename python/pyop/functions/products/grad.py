"""Differentiate products of matrices and tensors.

Each is linear in every factor: its tangent is the product with the tangent in the factor's place, and the cotangent of
a factor is a product of the cotangent with the conjugates of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...gradients import table
from ...gradients.adjoints import reshape_like
from ...gradients.rule import PerArgument, structural
from ...gradients.table import NoRule, Pullback, Rule
from ...gradients.unbroadcast import Shape, broadcast_like, conj, fit_dtype, shape_of, unbroadcast
from ...transforms.composite import composite
from .spec import LETTERS, implicit, subscripts


def _ndim(a: Any, what: str) -> int:
    shape = shape_of(a)
    if shape is None:
        raise NoRule(f"{what} has no gradient rule for an array of unknown rank: declare the rank in its spec")
    return len(shape)


def _h(a: Any) -> Any:
    return conj(np.swapaxes(a, -1, -2))


def _both(func: Any, left: Any, right: Any, names: tuple[str, str] = ("a", "b")) -> None:
    structural(func, (left, right), ("same", "same"), names)


# --- matmul


def _without_axes(name: str, rule: Any) -> Any:
    """Return the rule of a gufunc whose core dimensions are the last ones."""

    def checked(ct: Any, ans: Any, *args: Any, axes: Any = None, **kw: Any) -> Any:
        if axes is not None:
            raise NoRule(f"np.{name}(axes=...) has no gradient rule: move the axes yourself")
        return rule(ct, ans, *args, **kw)

    return checked


def _matmul_left(ct: Any, ans: Any, a: Any, b: Any, **kw: Any) -> Any:
    m, n = _ndim(a, "np.matmul"), _ndim(b, "np.matmul")
    if n == m == 1:
        return fit_dtype(ct * conj(b), a)  # as long as `a`, or there is no product
    if n == 1:
        return unbroadcast(ct[..., None] * conj(b), a)
    if m == 1:
        return unbroadcast(np.matmul(conj(b), ct[..., None])[..., 0], a)
    return unbroadcast(np.matmul(ct, _h(b)), a)


def _matmul_right(ct: Any, ans: Any, a: Any, b: Any, **kw: Any) -> Any:
    m, n = _ndim(a, "np.matmul"), _ndim(b, "np.matmul")
    if m == n == 1:
        return fit_dtype(conj(a) * ct, b)
    if m == 1:
        return unbroadcast(conj(a)[:, None] * ct[..., None, :], b)
    if n == 1 and m == 2:
        return fit_dtype(np.matmul(ct, conj(a)), b)
    if n == 1:
        return unbroadcast(np.matmul(_h(a), ct[..., None])[..., 0], b)
    return unbroadcast(np.matmul(_h(a), ct), b)


# --- tensordot


def _contracted(axes: Any, m: int, n: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the axes of both that are summed, and those that are not, counted from the front."""
    given = (range(m - axes, m), range(axes)) if isinstance(axes, int) else axes
    first, second = ([k % ndim for k in np.atleast_1d(item).tolist()] for item, ndim in zip(given, (m, n), strict=True))
    return first, second, [k for k in range(m) if k not in first], [k for k in range(n) if k not in second]


def _tensordot_left(ct: Any, ans: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    first, second, free_a, free_b = _contracted(axes, _ndim(a, "np.tensordot"), _ndim(b, "np.tensordot"))
    found = np.tensordot(ct, conj(b), (tuple(range(len(free_a), len(free_a) + len(free_b))), tuple(free_b)))
    # Its axes are the free ones of a, then the contracted ones in the order in which they stand in b.
    order = np.argsort(free_a + [first[second.index(k)] for k in sorted(second)])
    return np.transpose(found, tuple(order.tolist()))


def _tensordot_right(ct: Any, ans: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    first, second, free_a, free_b = _contracted(axes, _ndim(a, "np.tensordot"), _ndim(b, "np.tensordot"))
    found = np.tensordot(conj(a), ct, (tuple(free_a), tuple(range(len(free_a)))))
    order = np.argsort([second[first.index(k)] for k in sorted(first)] + free_b)
    return np.transpose(found, tuple(order.tolist()))


def _dot(func: Any, axis: int) -> None:
    """Add the rule of a function that sums the last axis of `a` against this axis of `b`; a number multiplies."""

    def left(ct: Any, ans: Any, a: Any, b: Any, out: Any = None) -> Any:
        m, n = _ndim(a, f"np.{func.__name__}"), _ndim(b, f"np.{func.__name__}")
        if not m or not n:
            return unbroadcast(ct * conj(b), a, ans)
        if func is np.dot and n < 3:
            return _matmul_left(ct, ans, a, b)
        return _tensordot_left(ct, ans, a, b, (-1, axis))

    def right(ct: Any, ans: Any, a: Any, b: Any, out: Any = None) -> Any:
        m, n = _ndim(a, f"np.{func.__name__}"), _ndim(b, f"np.{func.__name__}")
        if not m or not n:
            return unbroadcast(conj(a) * ct, b, ans)
        if func is np.dot and m < 3 and n < 3:
            return _matmul_right(ct, ans, a, b)
        return _tensordot_right(ct, ans, a, b, (-1, axis if n > 1 else -1))

    _both(func, left, right)


def _spread(ct: Any, axis: Any) -> Any:
    return np.expand_dims(ct, -1 if axis is None else int(axis))


# fmt: off
_both(np.matmul, _without_axes("matmul", _matmul_left), _without_axes("matmul", _matmul_right), ("x1", "x2"))
_dot(np.dot, -2)
_both(np.tensordot, _tensordot_left, _tensordot_right)
_dot(np.inner, -1)
_both(np.outer, lambda ct, ans, a, b, out=None: reshape_like(np.matmul(ct, conj(np.ravel(b))), a),
      lambda ct, ans, a, b, out=None: reshape_like(np.matmul(conj(np.ravel(a)), ct), b))
structural(np.vdot, (lambda ct, ans, a, b: reshape_like(conj(ct) * b, a),
                     lambda ct, ans, a, b: reshape_like(ct * a, b)),
           (lambda t, ans, a, b: np.vdot(t, b), lambda t, ans, a, b: np.vdot(a, t)), ("a", "b"))
if hasattr(np, "vecdot"):
    _both(np.vecdot,
          _without_axes("vecdot", lambda ct, ans, x, y, axis=-1, **kw: unbroadcast(_spread(conj(ct), axis) * y, x)),
          _without_axes("vecdot", lambda ct, ans, x, y, axis=-1, **kw: unbroadcast(_spread(ct, axis) * x, y)),
          ("x1", "x2"))
if hasattr(np, "matvec"):  # NumPy 2.2
    _both(np.matvec,
          _without_axes("matvec", lambda ct, ans, a, x, **kw: unbroadcast(ct[..., :, None] * conj(x)[..., None, :], a)),
          _without_axes("matvec", lambda ct, ans, a, x, **kw: unbroadcast(np.matvec(_h(a), ct), x)), ("x1", "x2"))
    # vecmat conjugates the vector.
    _both(np.vecmat, _without_axes("vecmat", lambda ct, ans, x, a, **kw: unbroadcast(np.matvec(a, conj(ct)), x)),
          _without_axes("vecmat", lambda ct, ans, x, a, **kw: unbroadcast(x[..., :, None] * ct[..., None, :], a)),
          ("x1", "x2"))
# fmt: on
for _name in ("matmul", "outer", "tensordot", "vecdot"):
    if hasattr(np.linalg, _name) and (_rule := table.lookup(getattr(np, _name))) and isinstance(_rule, PerArgument):
        table.add(PerArgument(getattr(np.linalg, _name), _rule.vjps, _rule.jvps, _rule.names, _rule.fits))


# --- einsum


class Einsum(Rule):
    """Differentiate ``np.einsum(subscripts, *operands)``: an einsum for each operand, with the cotangent for it."""

    def takes(self, parameter: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        if not isinstance(parameter, int):
            return ""
        if isinstance(args[0], str):
            return "array" if parameter else ""
        return "array" if parameter % 2 == 0 and parameter + 1 < len(args) else ""

    def _parse(self, args: tuple[Any, ...]) -> tuple[list[str], str, list[Any]]:
        """Return the subscripts of the operands, those of the result, and the operands."""
        text, operands = subscripts(args)
        left, arrow, right = text.partition("->")
        return left.split(","), right if arrow else implicit(left), operands

    def _operands(self, argnums: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
        """Return which operand each leaf is."""
        where = table.places(args, kwargs)
        first = 1 if isinstance(args[0], str) else 0
        found = []
        for k in argnums:
            place = where[k].argument
            if not isinstance(place, int):
                raise NoRule(f"np.einsum has no gradient rule for its argument {place!r}")
            found.append(place - 1 if first else place // 2)
        return found

    def vjp(self, argnums: tuple[int, ...], ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Pullback:
        inputs, output, operands = self._parse(args)
        which = self._operands(argnums, args, kwargs)
        if any("..." in text for text in inputs):
            inputs, output = _spelled_out(inputs, output, operands)

        def pullback(ct: Any) -> tuple[Any, ...]:
            return tuple([fit_dtype(_einsum_back(ct, k, inputs, output, operands), operands[k]) for k in which])

        return pullback

    def jvp(self, argnums: Any, tangents: Any, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs, output, operands = self._parse(args)
        text = f"{','.join(inputs)}->{output}"
        options = {key: value for key, value in kwargs.items() if key != "out"}
        total = None
        for k, t in zip(self._operands(argnums, args, kwargs), tangents, strict=True):
            part = np.einsum(text, *operands[:k], t, *operands[k + 1 :], **options)
            total = part if total is None else total + part
        return total


def _spelled_out(inputs: list[str], output: str, operands: list[Any]) -> tuple[list[str], str]:
    """Replace ``...`` by letters, where the ranks are known."""
    shapes = [shape_of(x) for x in operands]
    if any(shape is None for shape in shapes):
        return inputs, output
    counts = [len(shape or ()) - len(text.replace("...", "")) for text, shape in zip(inputs, shapes, strict=True)]
    longest = max([count for text, count in zip(inputs, counts, strict=True) if "..." in text])
    used = set("".join(inputs) + output)
    spare = [c for c in LETTERS if c not in used][:longest]
    if len(spare) < longest:
        return inputs, output
    dots = "".join(spare)
    found = [text.replace("...", dots[longest - n :] if n else "") for text, n in zip(inputs, counts, strict=True)]
    return found, output.replace("...", dots)


def _einsum_back(ct: Any, k: int, inputs: list[str], output: str, operands: list[Any]) -> Any:
    operand = operands[k]
    others = [(text, conj(x)) for j, (text, x) in enumerate(zip(inputs, operands, strict=True)) if j != k]
    target = inputs[k]
    letters = target.replace("...", "")
    unique = "".join(dict.fromkeys(letters))
    reachable = output + "".join(text for text, _ in others)
    kept = "".join(c for c in unique if c in reachable)
    dots = "..." if "..." in target else ""
    source = "..." if "..." in reachable else ""
    terms = ",".join([output, *(text for text, _ in others)])
    found = np.einsum(f"{terms}->{source}{kept}", ct, *(x for _, x in others))
    if unique == letters and kept == unique:
        before, _, _ = target.partition("...")
        if dots and before:  # the axes of `...` stand between letters
            found = _without_extra(found, operand)
            found = _moved(found, operand, len(before), len(kept))
        return unbroadcast(_like_operand(found, operand), operand)
    if dots:
        raise NoRule(f"np.einsum: the gradient of operand {target!r}, which repeats or drops letters beside '...'")
    sizes: Shape = shape_of(operand)
    if sizes is None:
        raise NoRule("np.einsum has no gradient rule for an array of unknown rank: declare the rank in its spec")
    # A letter that no other term has was summed: the same everywhere along it. One that stands twice took a diagonal.
    missing = [unique.index(c) for c in unique if c not in kept]
    for axis in missing:
        found = np.expand_dims(found, axis)
    if unique == letters:
        return broadcast_like(found, operand)
    diagonal = np.einsum(f"{letters}->{unique}", operand)  # only for its shape
    eyes = {}
    for c in unique:
        if letters.count(c) > 1:
            size = sizes[letters.index(c)]
            if not isinstance(size, int):
                raise NoRule(f"np.einsum: the gradient of {target!r} needs the size of {c!r} to be a number")
            eyes[c] = np.eye(size)
    return _onto_diagonal(broadcast_like(found, diagonal), letters, unique, eyes)


def _like_operand(found: Any, operand: Any) -> Any:
    """Return the gradient laid along axes where the other operands had one element."""
    have, want = shape_of(found), shape_of(operand)
    if have is None or want is None or len(have) < len(want):
        return found
    extra = len(have) - len(want)
    if not any(m == 1 and n != 1 for m, n in zip(have[extra:], want, strict=True)):
        return found
    return found + np.zeros_like(operand)


def _onto_diagonal(x: Any, letters: str, unique: str, eyes: dict[str, Any]) -> Any:
    """Return an array of axes `unique` laid on the diagonal of one of axes `letters`; `eyes` of letters that repeat."""
    spare = (c for c in LETTERS if c not in letters)
    target, terms, factors = "", [unique], [x]
    for k, c in enumerate(letters):
        if c not in letters[:k]:
            target += c
            continue
        fresh = next(spare)
        target += fresh
        terms.append(c + fresh)
        factors.append(eyes[c])
    return np.einsum(f"{','.join(terms)}->{target}", *factors)


def _without_extra(found: Any, operand: Any) -> Any:
    """Sum the leading axes that other operands have in ``...`` and this one has not."""
    have, want = shape_of(found), shape_of(operand)
    extra = 0 if have is None or want is None else len(have) - len(want)
    return np.sum(found, axis=tuple(range(extra))) if extra > 0 else found


def _moved(found: Any, operand: Any, front: int, letters: int) -> Any:
    """Return the axes of letters that stand before ``...`` brought to the front."""
    dots = len(shape_of(found) or ()) - letters
    return np.moveaxis(found, tuple(range(dots, dots + front)), tuple(range(front)))


table.add(Einsum(np.einsum))


# --- by what they are made of


@composite(np.kron)
def _kron(a: Any, b: Any) -> Any:
    ndim = max(_ndim(a, "np.kron"), _ndim(b, "np.kron"))
    a = a[(None,) * (ndim - _ndim(a, "np.kron"))] if _ndim(a, "np.kron") < ndim else a
    b = b[(None,) * (ndim - _ndim(b, "np.kron"))] if _ndim(b, "np.kron") < ndim else b
    pairs = np.expand_dims(a, tuple(range(1, 2 * ndim, 2))) * np.expand_dims(b, tuple(range(0, 2 * ndim, 2)))
    shape = tuple(m * n for m, n in zip(np.shape(a), np.shape(b), strict=True))
    return np.reshape(pairs, shape)


@composite(np.cross)
def _cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    if (np.shape(a)[-1], np.shape(b)[-1]) != (3, 3):
        raise NoRule(
            "np.cross has a gradient rule for vectors of three components: pass them with a third one of zero, or use "
            "a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]"
        )
    x, y = [a[..., k] for k in range(3)], [b[..., k] for k in range(3)]
    parts = [x[(k + 1) % 3] * y[(k + 2) % 3] - x[(k + 2) % 3] * y[(k + 1) % 3] for k in range(3)]
    return np.stack(parts, axis=axisc)


if hasattr(np.linalg, "cross"):
    composite(np.linalg.cross)(lambda x1, x2, /, *, axis=-1: _cross(x1, x2, axis=axis))
