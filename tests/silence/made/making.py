"""Statements that make arrays where there was none."""

from __future__ import annotations

import numpy as np

from .draw import Draw, kind


@kind(6)
def filled(d: Draw) -> str:
    a = d.array()
    shape = d.pick([f"{a}.shape", f"{a}.shape", "4", "3", "(3, 2)", "(2, 2)", f"{a}.size", f"(2, *{a}.shape)", "()"])
    texts = [f"np.zeros({shape})", f"np.ones({shape})", f"np.full({shape}, 2.0)", f"np.zeros_like({a})"]
    if not d.smooth:
        dtype = d.pick(["int", "np.float32", f"{a}.dtype", "complex", "bool", "'int8'", "float"])
        texts += [f"np.zeros({shape}, dtype={dtype})", f"np.ones({shape}, {dtype})", f"np.full({shape}, 3, {dtype})"]
        texts += [f"np.full_like({a}, 1.5)", f"np.ones_like({a}, dtype={dtype})", f"np.zeros({shape}, order='F')"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(3)
def empty(d: Draw) -> str:
    """Filled before anybody reads it."""
    a, new = d.array(), d.new()
    made = d.pick([f"np.empty({a}.shape)", f"np.empty_like({a})", f"np.empty((2, *{a}.shape))", "np.empty(3)"])
    fill = d.pick([f"{new}[...] = {a}", f"{new}[:] = {a}", f"{new}.fill(1.0)", f"{new}[...] = 0.5", f"{new}[:] = 2"])
    return f"{new} = {made}\n{fill}"


@kind(3)
def counted(d: Draw) -> str:
    a = d.array()
    texts = ["np.arange(4.0)", "np.eye(2)", "np.eye(3)", "np.linspace(0.0, 1.0, 4)", f"np.arange({a}.size) * 0.5"]
    texts += ["np.arange(4)", "np.identity(2)", "np.tri(3)"] if not d.smooth else []
    return f"{d.new()} = {d.pick(texts)}"


@kind(5)
def gathered(d: Draw) -> str:
    a = d.array(lambda a: a.ndim == 1 and a.size > 1)
    b = d.array()
    texts = [f"np.array([{a}[0], {a}[1]])", f"np.array([{a}[0], 2.0, {a}[-1]])", f"np.array([{b}, {b}])"]
    texts += [f"np.array({b})", f"np.asarray({b})", f"np.array([[{a}[0], 0.0], [1.0, {a}[1]]])", f"np.array({b}.sum())"]
    texts += [f"np.stack([{b}, {b}])", f"np.concatenate([{a}, {a}])", f"np.array([x * 2 for x in {a}])"]
    texts += [f"np.array([1.0, 2.0, 3.0])[{d.pick(['0', '1:', '::-1'])}]", f"np.array({b}, copy=True)"]
    if not d.smooth:
        texts += [f"np.r_[{a}, 1.0]", f"np.r_[0, {a}[0], {a}]", f"np.c_[{a}, {a}[::-1]]", f"np.r_[{a}[1:] > 0, True]"]
        texts += [f"np.array([{a}[0] > 0, True])", f"np.array(list({a}))", f"np.asarray([{a}[0]])"]
        texts += [f"np.array({b}, dtype=np.float32)", f"np.vstack([{a}, {a}])", f"np.array({b}, ndmin=2)"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(2, smooth=False)
def converted(d: Draw) -> str:
    """By a call of NumPy's type, of an array and of an element."""
    a = d.array(lambda a: a.ndim and a.size)
    called = d.pick(["np.float64", "np.float32", "np.int64", "np.uint8", "np.int16", "np.bool_", "np.complex128"])
    first = f"{a}[{', '.join('0' * np.ndim(d.variables[a])) or '()'}]"
    return f"{d.new()} = {called}({d.pick([a, first, first, f'{a}.sum()', f'{first} * 2'])})"


@kind(1, smooth=False)
def sized_by_contents(d: Draw) -> str:
    a = d.array()
    texts = [f"{a}[{a} > 0].size", f"np.unique({a}).shape", f"np.nonzero({a})[0].size", f"({a}[{a} != 0].nbytes, 1)"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(2, smooth=False)
def looked_up(d: Draw) -> str:
    """A table that the function makes, or holds, by an index of contents."""
    a = d.array(lambda a: a.dtype.kind in "iu" and a.size)
    if d.variables[a].dtype.kind not in "iu":
        return f"{d.new()} = ({a} > 0).astype(int)"
    texts = [f"np.array([0.5, 1.5, 2.5])[{a} % 3]", f"np.arange(5.0)[{a} % 5]", f"TABLE[{a} % 4]"]
    texts += [f"np.take(np.arange(4.0), {a} % 4)", f"np.bincount({a}.ravel() % 5)", f"np.eye(3)[{a} % 3]"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(3)
def made_and_written(d: Draw) -> str:
    """By element, by slice, through a view."""
    a, new = d.array(lambda a: a.ndim == 1 and a.size > 2), d.new()
    if np.ndim(d.variables[a]) != 1:
        return filled(d)
    texts = [
        f"{new} = np.zeros(len({a}))\n{new}[0] = {a}[-1]\n{new}[1:] = {a}[1:] - {a}[:-1]",
        f"{new} = np.zeros((2, {a}.size))\n{new}[0] = {a}\n{new}[1, ::-1] = {new}[0]",
        f"{new} = np.zeros(({a}.size, 2))\nfor k in range({a}.size):\n    {new}[k, k % 2] = {a}[k]",
        f"{new} = np.ones({a}.shape)\nfor k in range(1, len({a})):\n    {new}[k] = {new}[k - 1] * 0.5 + {a}[k]",
        f"{new} = np.zeros(3)\nfor row in [{new}[:2], {new}[1:]]:\n    row += {a}[:2]",
        f"{new} = padded({a})",
        f"{new} = differences({a})",
    ]
    return d.pick(texts)
