"""Elementwise lines."""

from __future__ import annotations

import importlib.util

from .draw import FLOAT, INEXACT, INTEGER, REAL, Draw, Made, kind


@kind(14)
def arithmetic(d: Draw) -> Made:
    text, refs = d.operands()
    sign = d.weighted(["+", "-", "*", "/", "//", "%", "**"], [6, 6, 6, 4, 1, 1, 2])[0]
    # -1 ** x is -(1 ** x).
    return f" {sign} ".join(f"({part})" if part[0] == "-" else part for part in text.split(", ")), refs


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
