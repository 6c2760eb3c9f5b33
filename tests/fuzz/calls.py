"""Random lines of NumPy. Each maker of a kind gives the text of a call, in which ``$0``, ``$1``, … stand for values.

A maker is free to give a call that NumPy refuses: the program is grown by running it, and what fails is not taken.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import DTYPES, WEIGHTS

Made = tuple[str, tuple[int, ...]]


class Draw:
    """Random choices among the values of a program so far."""

    def __init__(self, r: random.Random, values: list[np.ndarray]) -> None:
        self.values = values
        self.random = r.random
        self.pick = r.choice
        self.weighted = r.choices
        self.below = r.randrange
        self._r = r

    def value(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> int:
        """The place of a value, a recent one more often; of one that is accepted, if there is any."""
        places = range(len(self.values))
        for _ in range(6):
            k = self.pick(places[-3:]) if self.random() < 0.5 else self.pick(places)
            if accept(self.values[k]):
                return k
        fitting = [k for k in places if accept(self.values[k])]
        return self.pick(fitting or places)

    def two(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> tuple[int, int]:
        """Places of two values that broadcast, if there are such."""
        a = self.value(accept)
        return a, self.beside(a, accept)

    def beside(self, a: int, accept: Callable[[np.ndarray], Any] = lambda a: True) -> int:
        shape = self.values[a].shape
        return self.value(lambda b: broadcasts(shape, b.shape) and accept(b))

    def number(self) -> str:
        return self.pick(NUMBERS)

    def operands(self, accept: Callable[[np.ndarray], Any] = lambda a: True) -> Made:
        """Two operands: values, or a value and a number."""
        if self.random() < 0.25:
            a = self.value(accept)
            return self.pick([f"$0, {self.number()}", f"{self.number()}, $0"]), (a,)
        return "$0, $1", self.two(accept)

    def axis(self, a: int) -> int:
        rank = self.values[a].ndim
        return self._r.randrange(-rank, rank) if rank else 0

    def axes(self, a: int) -> str:
        rank = self.values[a].ndim
        if not rank or self.random() < 0.25:
            return "None"
        if self.random() < 0.6:
            return str(self.axis(a))
        return str(tuple(self._r.sample(range(rank), self.below(rank + 1))))

    def dtype(self) -> str:
        return self.weighted(DTYPES, WEIGHTS)[0]

    def sample(self, items: Any, k: int) -> list[Any]:
        return self._r.sample(items, k)


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b), strict=False))


Maker = Callable[[Draw], Made]
KINDS: dict[str, tuple[float, Maker]] = {}
NUMBERS = ["2", "3", "-1", "0", "1", "2.0", "0.5", "-0.0", "1e30", "True", "1j", "300", "np.float32(1.5)", "np.int8(3)"]
REAL = lambda a: a.dtype.kind in "buif"
FLOAT = lambda a: a.dtype.kind == "f"
INTEGER = lambda a: a.dtype.kind in "biu"
INEXACT = lambda a: a.dtype.kind in "fc"
RANKED = lambda a: a.ndim > 0


def kind(weight: float) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        KINDS[maker.__name__] = (weight, maker)
        return maker

    return register


# --- elementwise


@kind(14)
def arithmetic(d: Draw) -> Made:
    text, refs = d.operands()
    sign = d.weighted(["+", "-", "*", "/", "//", "%", "**"], [6, 6, 6, 4, 1, 1, 2])[0]
    return f" {sign} ".join(text.split(", ")), refs


@kind(4)
def arithmetic_functions(d: Draw) -> Made:
    text, refs = d.operands()
    return f"np.{d.pick(['add', 'subtract', 'multiply', 'divide', 'floor_divide', 'remainder', 'power'])}({text})", refs


@kind(1)
def float_power(d: Draw) -> Made:
    text, refs = d.operands()
    return f"np.{d.pick(['float_power', 'fmod'])}({text})", refs


@kind(5)
def unary(d: Draw) -> Made:
    names = ["negative", "absolute", "sqrt", "square", "reciprocal", "sign", "positive", "conjugate"]
    return f"np.{d.pick(names)}($0)", (d.value(),)


@kind(1)
def operator_unary(d: Draw) -> Made:
    return d.pick(["-$0", "abs($0)", "+$0", "~$0"]), (d.value(),)


@kind(2)
def rounding(d: Draw) -> Made:
    names = ["floor", "ceil", "rint", "trunc", "fabs", "cbrt", "np.round($0, 1)", "np.fix($0)", "np.nan_to_num($0)"]
    name = d.pick(names)
    return name if "$" in name else f"np.{name}($0)", (d.value(REAL),)


@kind(4)
def transcendental(d: Draw) -> Made:
    names = ["exp", "log", "sin", "cos", "tan", "tanh", "arctan", "expm1", "log1p", "log2", "log10", "exp2", "sinh"]
    return f"np.{d.pick([*names, 'arcsin', 'arccosh', 'cosh', 'deg2rad'])}($0)", (d.value(INEXACT),)


@kind(2)
def transcendental_pairs(d: Draw) -> Made:
    text, refs = d.operands(REAL)
    return f"np.{d.pick(['hypot', 'arctan2', 'logaddexp', 'logaddexp2'])}({text})", refs


@kind(4)
def comparison(d: Draw) -> Made:
    text, refs = d.operands()
    if d.random() < 0.5:
        return f" {d.pick(['<', '<=', '>', '>=', '==', '!='])} ".join(text.split(", ")), refs
    return f"np.{d.pick(['less', 'less_equal', 'greater', 'greater_equal', 'equal', 'not_equal'])}({text})", refs


@kind(2)
def logical(d: Draw) -> Made:
    if d.random() < 0.3:
        return "np.logical_not($0)", (d.value(),)
    text, refs = d.operands()
    return f"np.{d.pick(['logical_and', 'logical_or', 'logical_xor'])}({text})", refs


@kind(2)
def bitwise(d: Draw) -> Made:
    if d.random() < 0.2:
        return d.pick(["np.invert($0)", "~$0"]), (d.value(INTEGER),)
    text, refs = d.operands(INTEGER)
    if d.random() < 0.5:
        return f" {d.pick(['&', '|', '^', '<<', '>>'])} ".join(text.split(", ")), refs
    return f"np.{d.pick(['bitwise_and', 'bitwise_or', 'bitwise_xor', 'left_shift', 'right_shift'])}({text})", refs


@kind(3)
def several_outputs(d: Draw) -> Made:
    if d.random() < 0.5:
        return f"np.{d.pick(['modf', 'frexp'])}($0)", (d.value(REAL),)
    text, refs = d.operands(REAL)
    return f"{d.pick(['np.divmod', 'divmod'])}({text})", refs


@kind(4)
def extremes(d: Draw) -> Made:
    text, refs = d.operands()
    return f"np.{d.pick(['maximum', 'minimum', 'fmax', 'fmin'])}({text})", refs


@kind(2)
def clip(d: Draw) -> Made:
    if d.random() < 0.5:
        return f"np.clip($0, {d.pick(['-1', '0', '0.5', 'None'])}, {d.pick(['1', '2', '1.5'])})", (d.value(REAL),)
    a, b = d.two()
    return "np.clip($0, $1, $2)", (a, b, d.beside(a))


@kind(5)
def where(d: Draw) -> Made:
    condition = d.value(lambda a: a.dtype == bool)
    a = d.beside(condition)
    if d.random() < 0.3:
        return d.pick([f"np.where($0, $1, {d.number()})", f"np.where($0, {d.number()}, $1)"]), (condition, a)
    return "np.where($0, $1, $2)", (condition, a, d.beside(a))


@kind(5)
def astype(d: Draw) -> Made:
    return f"$0.astype({d.dtype()!r}{d.pick(['', '', ', copy=False', ', order=' + repr('C')])})", (d.value(),)


@kind(2)
def classification(d: Draw) -> Made:
    return f"np.{d.pick(['isnan', 'isinf', 'isfinite', 'signbit', 'spacing', 'isneginf'])}($0)", (d.value(REAL),)


@kind(2)
def floating_pairs(d: Draw) -> Made:
    if d.random() < 0.3:
        a = d.value(REAL)
        return "np.ldexp($0, $1)", (a, d.beside(a, INTEGER))
    text, refs = d.operands(REAL)
    return f"np.{d.pick(['copysign', 'nextafter', 'heaviside', 'gcd', 'lcm'])}({text})", refs


@kind(1)
def complex_parts(d: Draw) -> Made:
    texts = ["np.real($0)", "$0.imag", "np.angle($0)", "$0.real", "np.imag($0)", "np.isreal($0)"]
    return d.pick(texts), (d.value(lambda a: a.dtype.kind == "c"),)


@kind(2)
def loop_of_another_dtype(d: Draw) -> Made:
    text, refs = d.operands()
    casting = d.pick(["", "", ", casting='unsafe'", ", casting='safe'"])
    return f"np.{d.pick(['add', 'multiply', 'maximum', 'divide'])}({text}, dtype={d.dtype()!r}{casting})", refs


@kind(2)
def scipy_special(d: Draw) -> Made:
    if importlib.util.find_spec("scipy") is None:
        return unary(d)
    if d.random() < 0.3:
        a, b = d.two(FLOAT)
        return f"special.{d.pick(['xlogy', 'xlog1py', 'betaln', 'binom'])}($0, $1)", (a, b)
    return f"special.{d.pick(['erf', 'erfc', 'expit', 'gammaln', 'logit', 'j0', 'ndtr'])}($0)", (d.value(FLOAT),)


@kind(1)
def alike(d: Draw) -> Made:
    return d.pick(["np.zeros_like($0)", "np.ones_like($0)", "np.full_like($0, 3)", "np.copy($0)"]), (d.value(),)


# --- reductions


def keepdims(d: Draw) -> str:
    return ", keepdims=True" if d.random() < 0.3 else ""


@kind(6)
def sums(d: Draw) -> Made:
    a = d.value()
    refs: tuple[int, ...] = (a,)
    more = keepdims(d)
    if d.random() < 0.15:
        more += f", dtype={d.dtype()!r}"
    if d.random() < 0.15:
        more += f", initial={d.number()}"
    if d.random() < 0.15:
        mask = d.value(lambda m: m.dtype == bool and broadcasts(m.shape, d.values[a].shape))
        more, refs = more + ", where=$1", (a, mask)
    if d.random() < 0.3 and not more:
        return f"$0.{d.pick(['sum', 'prod'])}({d.axes(a)})", refs
    return f"np.{d.pick(['sum', 'sum', 'prod'])}($0, axis={d.axes(a)}{more})", refs


@kind(4)
def moments(d: Draw) -> Made:
    a = d.value()
    more = keepdims(d)
    name = d.pick(["mean", "mean", "var", "std"])
    if d.random() < 0.15:
        more += f", dtype={d.pick(['f', 'd', 'D'])!r}"
    if name != "mean" and d.random() < 0.3:
        more += ", ddof=1"
    if d.random() < 0.15:
        mask = d.value(lambda m: m.dtype == bool and broadcasts(m.shape, d.values[a].shape))
        return f"np.{name}($0, axis={d.axes(a)}{more}, where=$1)", (a, mask)
    return f"np.{name}($0, axis={d.axes(a)}{more})", (a,)


@kind(4)
def largest(d: Draw) -> Made:
    a = d.value()
    more = keepdims(d)
    name = d.pick(["max", "min", "max", "min", "nanmax", "ptp"])
    if name in ("max", "min") and d.random() < 0.3:
        mask = d.value(lambda m: m.dtype == bool and broadcasts(m.shape, d.values[a].shape))
        return f"np.{name}($0, axis={d.axes(a)}{more}, initial={d.pick(['0', '1', '-1'])}, where=$1)", (a, mask)
    return f"np.{name}($0, axis={d.axes(a)}{more})", (a,)


@kind(2)
def truths(d: Draw) -> Made:
    a = d.value()
    return f"np.{d.pick(['any', 'all', 'count_nonzero'])}($0, axis={d.axes(a)}{keepdims(d)})", (a,)


@kind(2)
def place_of_largest(d: Draw) -> Made:
    a = d.value()
    axis = d.pick(["None", str(d.axis(a))])
    return f"np.{d.pick(['argmax', 'argmin'])}($0, axis={axis}{keepdims(d)})", (a,)


@kind(3)
def running(d: Draw) -> Made:
    a = d.value(RANKED)
    if d.random() < 0.5:
        return f"np.{d.pick(['cumsum', 'cumprod'])}($0, axis={d.pick(['None', str(d.axis(a))])})", (a,)
    name = d.pick(["add", "multiply", "maximum", "minimum", "subtract", "logical_or", "bitwise_xor"])
    return f"np.{name}.accumulate($0, axis={d.axis(a)})", (a,)


@kind(3)
def ufunc_reduce(d: Draw) -> Made:
    a = d.value(RANKED)
    names = ["add", "multiply", "maximum", "minimum", "fmax", "subtract", "logical_and", "logical_xor", "bitwise_or"]
    name = d.pick([*names, "hypot", "divide", "logaddexp"])
    axes = d.axes(a) if name not in ("subtract", "divide", "hypot") else d.axis(a)
    return f"np.{name}.reduce($0, axis={axes}{keepdims(d)})", (a,)


@kind(1)
def reduceat(d: Draw) -> Made:
    a = d.value(RANKED)
    return f"np.{d.pick(['add', 'maximum', 'multiply'])}.reduceat($0, [0, 1, 0], axis={d.axis(a)})", (a,)


@kind(1)
def outer_method(d: Draw) -> Made:
    a, b = d.value(lambda a: a.ndim < 3 and small(a)), d.value(lambda a: a.ndim < 3 and small(a))
    return f"np.{d.pick(['add', 'multiply', 'less', 'maximum'])}.outer($0, $1)", (a, b)


# --- views


@kind(5)
def reshape(d: Draw) -> Made:
    a = d.value()
    shape = d.values[a].shape
    texts = ["np.reshape($0, -1)", "np.reshape($0, (1, -1))", "$0.reshape(-1, 1)"]
    if shape:
        texts += ["$0.reshape($0.shape[::-1])", "np.reshape($0, ($0.shape[0], -1))", "np.reshape($0, -1, order='F')"]
        factors = [k for k in (2, 3, 4) if int(np.prod(shape)) % k == 0]
        texts += [f"np.reshape($0, (-1, {k}))" for k in factors]
    return d.pick(texts), (a,)


@kind(5)
def transpose(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 1)
    rank = d.values[a].ndim
    order = tuple(d.sample(range(rank), rank))
    texts = [f"np.transpose($0, {order})", "$0.T", f"np.swapaxes($0, {d.axis(a)}, {d.axis(a)})", "np.transpose($0)"]
    return d.pick([*texts, f"np.moveaxis($0, {d.axis(a)}, {d.axis(a)})", "np.matrix_transpose($0)"]), (a,)


@kind(6)
def basic_index(d: Draw) -> Made:
    a = d.value(RANKED)
    parts = ["::-1", "::2", "1:", ":-1", "-2:", ":", "0", "-1", "None", "...", "1:2", "::-2", "5:1", "3:0:-1"]
    key = d.sample(parts, 1 + d.below(max(d.values[a].ndim, 1)))
    return f"$0[{', '.join(key)}]", (a,)


@kind(3)
def broadcast_to(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim < 4)
    b = d.beside(a)
    texts = ["np.broadcast_to($0, (2, *$0.shape))", "np.broadcast_to($0, (3, 2, *$0.shape))"]
    if d.random() < 0.5:
        return "np.broadcast_arrays($0, $1)", (a, b)
    return d.pick([*texts, "np.broadcast_to($0, $0.shape)"]), (a,)


@kind(3)
def expand_dims(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim < 4)
    texts = [f"np.expand_dims($0, {d.below(d.values[a].ndim + 1)})", "np.expand_dims($0, (0, -1))", "$0[..., None]"]
    return d.pick([*texts, "np.atleast_2d($0)", "np.atleast_1d($0)"]), (a,)


@kind(2)
def squeeze(d: Draw) -> Made:
    a = d.value(lambda a: 1 in a.shape)
    return d.pick(["np.squeeze($0)", f"np.squeeze($0, axis={d.axis(a)})", "$0.squeeze()"]), (a,)


@kind(2)
def diagonal(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 1)
    offset = d.pick([0, 1, -1])
    texts = [f"np.diagonal($0, {offset})", f"np.diagonal($0, {offset}, {d.axis(a)}, {d.axis(a)})", "np.trace($0)"]
    return d.pick([*texts, f"np.diag($0, {offset})", f"np.{d.pick(['tril', 'triu'])}($0, {offset})"]), (a,)


@kind(2)
def ravel(d: Draw) -> Made:
    return d.pick(["np.ravel($0)", "$0.ravel()", "np.ravel($0, order='F')", "$0.flatten()"]), (d.value(),)


@kind(3)
def flip(d: Draw) -> Made:
    a = d.value(RANKED)
    texts = [f"np.flip($0, {d.axes(a)})", "np.flipud($0)", "np.fliplr($0)", "np.rot90($0)"]
    return d.pick([*texts, f"np.roll($0, {d.pick([1, -2])}, axis={d.axis(a)})"]), (a,)


# --- indexing, joining, splitting


@kind(4)
def array_index(d: Draw) -> Made:
    a = d.value(RANKED)
    texts = ["$0[[0, -1, 0]]", "$0[[0, 0], ..., [0, -1]]", "$0[..., np.array([[0], [-1]])]", "$0[[True]]", "$0[[], 0:]"]
    if d.random() < 0.5:
        mask = d.value(lambda m: m.dtype == bool and m.shape == d.values[a].shape)
        return d.pick(["$0[$1]", "np.compress($1, $0)"]), (a, mask)
    if d.random() < 0.4:
        index = d.value(lambda i: i.dtype.kind in "iu")
        return d.pick(["$0[$1]", "$0[..., $1]", "$0[:, $1]"]), (a, index)
    return d.pick(texts), (a,)


@kind(3)
def take(d: Draw) -> Made:
    a = d.value(RANKED)
    index = d.value(lambda i: i.dtype.kind in "iu")
    if d.random() < 0.5 and d.values[index].dtype.kind in "iu":
        # Wrapping takes NumPy as many steps as the index is large.
        which, mode = d.pick([("$1", "raise"), ("$1 % 9", "wrap"), ("$1", "clip")])
        return f"np.take($0, {which}, {d.pick(['None', str(d.axis(a))])}, mode={mode!r})", (a, index)
    texts = [f"np.take($0, [0, -1], axis={d.axis(a)})", "np.take($0, 0)"]
    axis = d.axis(a)
    texts.append(f"np.take_along_axis($0, np.argsort($0, axis={axis}), axis={axis})")
    return d.pick(texts), (a,)


@kind(4)
def concatenate(d: Draw) -> Made:
    a = d.value(RANKED)
    shape = d.values[a].shape
    b = d.value(lambda b: b.ndim == len(shape) and b.shape[1:] == shape[1:])
    if d.random() < 0.3:
        return d.pick(["np.vstack([$0, $1])", "np.hstack(($0, $1))", "np.append($0, $1)"]), (a, b)
    dtype = d.pick(["", "", f", dtype={d.dtype()!r}, casting='unsafe'"])
    return f"np.concatenate([$0, $1, $0], axis={d.pick(['0', '0', 'None', '-1'])}{dtype})", (a, b)


@kind(3)
def stack(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim < 4)
    shape = d.values[a].shape
    b = d.value(lambda b: b.shape == shape)
    return f"np.{d.pick(['stack([$0, $1], axis=0)', 'stack(($0, $1), -1)', 'column_stack([$0, $1])'])}", (a, b)


@kind(2)
def split(d: Draw) -> Made:
    a = d.value(RANKED)
    return f"np.{d.pick(['split', 'array_split'])}($0, {d.pick(['2', '3', '[1]'])}, axis={d.axis(a)})", (a,)


@kind(2)
def repeat(d: Draw) -> Made:
    a = d.value(RANKED)
    texts = [f"np.repeat($0, 2, axis={d.axis(a)})", "np.tile($0, 2)", "np.tile($0, (2, 1))", "np.pad($0, 1)"]
    return d.pick([*texts, f"np.repeat($0, {d.pick(['2', '0'])})"]), (a,)


# --- products and linear algebra


def small(a: np.ndarray) -> bool:
    return bool(a.size < 400)


@kind(4)
def matmul(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 0 and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 1
    if d.random() < 0.4:
        return d.pick(["$0 @ $0.T", "np.matmul($0, np.swapaxes($0, -1, -2))", "np.matmul($0.mT, $0)"]), (a,)
    b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n)
    return d.pick(["np.matmul($0, $1)", "$0 @ $1"]), (a, b)


@kind(3)
def dot(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim < 3 and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 1
    b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n and small(b))
    texts = ["np.dot($0, $1)", "np.inner($0, $1)", "np.outer($0, $1)", "np.vdot($0, $1)", "np.kron($0, $1)"]
    return d.pick([*texts, "np.dot($0, $1)", "np.tensordot($0, $1, axes=1)"]), (a, b)


@kind(2)
def vecdot(d: Draw) -> Made:
    a = d.value(RANKED)
    n = d.values[a].shape[-1:]
    return f"np.{d.pick(['vecdot', 'vecdot', 'linalg.vecdot'])}($0, $1)", (a, d.value(lambda b: b.shape[-1:] == n))


@kind(3)
def einsum(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 0 and small(a))
    rank, shape = d.values[a].ndim, d.values[a].shape
    if d.random() < 0.3:
        return (
            f"np.einsum({d.pick(['...i->...', 'i...->...i', '...ij->...ji', 'ii', 'ij->', '...i,...i->...i'])!r}, $0)",
            (a,),
        )
    b = d.value(lambda b: b.ndim > 0 and b.shape[:1] == shape[-1:] and small(b))
    letters = "ijk"[:rank]
    other = letters[-1:] + "lm"[: d.values[b].ndim - 1]
    return f"np.einsum({d.pick([f'{letters},{other}', '...i,i...->...', '...i,i->...'])!r}, $0, $1)", (a, b)


@kind(3)
def linalg(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 1 and a.shape[-1] == a.shape[-2] and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 0
    if d.random() < 0.4:
        b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n)
        return "np.linalg.solve($0, $1)", (a, b)
    name = d.pick(["inv", "det", "slogdet", "cholesky", "eigvalsh", "norm", "matrix_power"])
    return f"np.linalg.{name}($0{', 2' if name == 'matrix_power' else ''})", (a,)


@kind(1)
def norms(d: Draw) -> Made:
    a = d.value(INEXACT)
    return f"np.linalg.norm($0, axis={d.pick(['None', str(d.axis(a))])})", (a,)


@kind(3)
def order(d: Draw) -> Made:
    a = d.value(RANKED)
    texts = [f"np.sort($0, axis={d.axis(a)})", "np.argsort($0, kind='stable')", f"np.diff($0, axis={d.axis(a)})"]
    texts += ["np.searchsorted(np.sort($0), 1)", "np.sort($0, axis=None)", "np.unique($0)", "np.nonzero($0)"]
    return d.pick([*texts, "np.cumsum($0)[::-1]", "np.median($0)"]), (a,)


@kind(2)
def python_node(d: Draw) -> Made:
    """A function that only Python can run, between the others."""
    return d.pick(["opaque($0)", "opaque($0)", "opaque($0) * 2", "reversed_view($0)"]), (d.value(),)


def random_call(r: random.Random, values: list[np.ndarray]) -> Made:
    """One line, of a random kind."""
    return r.choices(_MAKERS, cum_weights=_CUMULATED)[0](Draw(r, values))


_MAKERS = [maker for _, maker in KINDS.values()]
_CUMULATED = list(np.cumsum([weight for weight, _ in KINDS.values()]))
