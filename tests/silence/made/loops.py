"""Loops: counters in indices and slices, nested and triangular, numbers and names that are carried, early ends."""

from __future__ import annotations

import numpy as np

from .draw import Draw, kind
from .statements import SIGNS


def size_of(d: Draw, *names: str) -> int:
    return min([len(d.variables[name]) if np.ndim(d.variables[name]) else 0 for name in names])


def place(d: Draw, i: str = "i") -> str:
    texts = [i, i, i, f"{i} - 1", f"-1 - {i}", f"{i} // 2", "0", f"-{i}", f"{i} % 2", f"{i} + 1"]
    return d.pick(texts)


def part(d: Draw, i: str = "i") -> str:
    return d.pick([f"{i}:", f":{i}", f"{i} + 1:", f":{i} + 1", f"{i}:{i} + 2", f"::{i} + 1", f"{i}::-1", f"-{i}:"])


def head(d: Draw, n: int, i: str = "i") -> str:
    ranges = [f"range({n})", f"range({n})", f"range(1, {n})", f"range({n} - 1, -1, -1)", f"range(0, {n}, 2)"]
    ranges += [f"reversed(range({n}))", f"range({n} - 1)", "range(2)", "range(0)", f"range(-1, {n} - 1)"]
    return f"for {i} in {d.pick(ranges)}:"


def term(d: Draw, a: str, b: str, i: str) -> str:
    texts = [f"{b}[{place(d, i)}]", f"{b}[{place(d, i)}] * 0.5", f"{a}[{place(d, i)}] + {b}[{place(d, i)}]"]
    texts += [f"{a}[{part(d, i)}].sum()", f"{b}[{place(d, i)}] * {a}[{place(d, i)}]", f"{i} * 0.5", "0.25"]
    texts += [f"np.sin({b}[{place(d, i)}])", f"{a}[{place(d, i)}] - {i}", f"{a}[:{i}] @ {b}[:{i}]"]
    return d.pick(texts)


def line(d: Draw, a: str, b: str, i: str) -> str:
    texts = [f"{a}[{place(d, i)}] = {term(d, a, b, i)}", f"{a}[{place(d, i)}] {d.pick(SIGNS)}= {term(d, a, b, i)}"]
    texts += [f"{a}[{part(d, i)}] {d.pick(SIGNS)}= {term(d, a, b, i)}", f"{a}[{part(d, i)}] = {a}[{place(d, i)}]"]
    texts += [f"w = {a}[{part(d, i)}]\nw {d.pick(SIGNS)}= {term(d, a, b, i)}", f"{a} *= 0.5", f"{a} += {b}"]
    return d.pick(texts)


def indented(text: str) -> str:
    return "\n".join(f"    {row}" for row in text.split("\n"))


@kind(8)
def counted_loop(d: Draw) -> str:
    a, b = d.written(), d.array(lambda b: b.ndim > 0)
    n = size_of(d, a, b)
    body = "\n".join(line(d, a, b, "i") for _ in range(d.pick([1, 1, 2, 3])))
    if d.random() < 0.2:
        tests = ["i % 2", "i == 0", "i > 1", "not i"] + ([] if d.smooth else [f"{a}[i] > 0", f"{b}[i] < {a}[0]"])
        body = (
            f"if {d.pick(tests)}:\n{indented(body)}\n{d.pick(['else:', 'elif i > 2:'])}\n{indented(line(d, a, b, 'i'))}"
        )
    return f"{head(d, n)}\n{indented(body)}"


@kind(4)
def nested_loop(d: Draw) -> str:
    a, b = d.written(), d.array(lambda b: b.ndim > 0)
    n = size_of(d, a, b)
    inner = d.pick([f"range({n})", "range(i)", f"range(i, {n})", f"range(i + 1, {n})", "range(2)"])
    if np.ndim(d.variables[a]) > 1:
        j = d.pick(["i, j", "j, i", "i, j - 1", "i, -1", "i, 0", "j"])
        body = d.pick([f"{a}[{j}] = {a}[{d.pick(['i, j', 'i, j - 1', '0, j'])}] * 0.5 + i", f"{a}[{j}] += 1.0 * j"])
    else:
        body = d.pick([f"{a}[i] += {b}[j] * 0.5", f"{a}[i] -= {a}[j]", f"{a}[j] = {b}[i] + j", line(d, a, b, "j")])
    after = f"\n    {a}[i] *= 0.5" if d.random() < 0.4 else ""
    return f"{head(d, n)}\n    for j in {inner}:\n{indented(indented(body))}{after}"


@kind(4)
def carried(d: Draw) -> str:
    """A number or an array that is bound anew in each turn."""
    a, b, new = d.array(lambda a: a.ndim > 0), d.array(lambda b: b.ndim > 0), d.new()
    n = size_of(d, a, b)
    begin = d.pick(["0.0", f"{a}[0]", "1.0", f"{a} * 1.0", f"{a}.copy()", f"{a}.sum()"])
    steps = [f"{new} = {new} + {a}[i]", f"{new} += {a}[i]", f"{new} = {new} * 0.5 + {b}[i]", f"{new} = {a}[i] - {new}"]
    steps += [f"{new} = np.maximum({new}, {a}[i])", f"{new} -= {term(d, a, b, 'i')}"]
    kept = f"\n    {b}[i] = {new}" if b[0] == "v" and d.random() < 0.4 else ""
    return f"{new} = {begin}\n{head(d, n)}\n    {d.pick(steps)}{kept}"


@kind(4)
def exchanged(d: Draw) -> str:
    """Two buffers, or two numbers, that change names."""
    a = d.written()
    alike = d.named(lambda b: isinstance(b, np.ndarray) and b.shape == np.shape(d.variables[a]) and b.ndim > 0)
    b = d.pick([name for name in alike if name != a] or [a])
    swaps = [f"{a}, {b} = {b}, {a}", f"t = {a}\n{a} = {b}\n{b} = t", f"{a}, {b} = {b}, {a} + {b}"]
    writes = [f"{b}[1:-1] = 0.5 * ({a}[2:] + {a}[:-2])", f"{b}[...] = {a} * 0.5", f"{b} += {a}", f"{b}[0] = {a}[-1]"]
    return f"for _ in range({d.pick(['1', '2', '3', '4'])}):\n{indented(d.pick(writes))}\n{indented(d.pick(swaps))}"


@kind(3)
def views_kept(d: Draw) -> str:
    """Views that outlive a turn, and are written in a later one."""
    a, new = d.written(), d.new()
    texts = [
        f"{new} = {a}\nfor _ in range(2):\n    {new} = {new}[1:]\n    {new} += 1.0",
        f"{new} = [{a}[i:] for i in range(3)]\nfor w in {new}:\n    w *= 0.5",
        f"{new} = {a}[::-1]\nfor i in range(2):\n    {new}[i] = {a}[i] + 1.0\n    {a}[i] *= 2.0",
        f"{new} = {a}[:1]\nfor i in range(len({a})):\n    {new} += i\n    {new} = {a}[i:i + 1]",
        f"{new} = []\nfor i in range(2):\n    {new}.append({a}[i:])\n    {a} += 1.0",
        f"{new} = []\nfor i in range(2):\n    {new}.append({a}.copy())\n    {a}[i] = 0.0",
    ]
    return d.pick(texts)


@kind(3)
def other_heads(d: Draw) -> str:
    a, b = d.written(), d.array(lambda b: b.ndim > 0)
    texts = [
        f"for i, x in enumerate({b}):\n    {a}[i] = x * 2",
        f"for i, x in enumerate({a}):\n    {a}[-1] += x",
        f"for x, y in zip({a}, {b}):\n    {b}[0] = x + y",
        f"for i, j in zip(range(2), range(1, 3)):\n    {a}[i] = {a}[j]",
        f"for x in {a}[::-1]:\n    {a}[0] += x",
        f"k = 0\nwhile k < {d.pick(['2', '3', 'len(' + a + ')'])}:\n    {a}[k] += {b}[k]\n    k += 1",
        f"k = len({a})\nwhile k:\n    k -= 1\n    {a}[k] *= 0.5",
        f"for i in range(3):\n    if i == 1:\n        continue\n    {a}[i] = {b}[i]",
        f"for i in range(9):\n    if i >= len({a}):\n        break\n    {a}[i] -= i\nelse:\n    {a} += 1",
        f"for i in range(2):\n    for w in halves({a}):\n        w += {b}[0]",
        f"for i in [0, 1]:\n    {a}[i] += {a}[1 - i]",
    ]
    return d.pick(texts)


@kind(3, smooth=False)
def ended_by_contents(d: Draw) -> str:
    a, b = d.written(), d.array(lambda b: b.ndim > 0)
    texts = [
        f"k = 0\nwhile np.abs({a}).sum() > 1 and k < 4:\n    {a} *= 0.5\n    k += 1",
        f"k = 0\nwhile k < 5:\n    {a} += 1\n    k += 1\n    if {a}.sum() > 10:\n        break",
        f"for i in range(len({a})):\n    if {a}[i] > {b}[0]:\n        break\n    {a}[i] = i",
        f"for i in range(len({a})):\n    if {a}[i] > 0:\n        {a}[i] = -1\n        continue\n    {a}[i] += 1",
        f"k = 0\nfor i in range(len({a})):\n    if {a}[i] > {a}[k]:\n        k = i\n{a}[k] = 0",
        f"for i in range(len({a}) - 1):\n    if {a}[i] > {a}[i + 1]:\n        {a}[i], {a}[i + 1] = {a}[i + 1], {a}[i]",
        f"k = 0\nwhile {a}[k] < 0 and k < len({a}) - 1:\n    k += 1\n{a}[k] = 5",
        f"{d.new()} = 0\nfor x in {b}.ravel():\n    if x > 0:\n        {d.new()} += 1",
        f"{d.new()} = []\nfor i in range(len({b})):\n    if {b}[i] > 0:\n        {d.new()}.append({b}[i])",
    ]
    return d.pick(texts)
