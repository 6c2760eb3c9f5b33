"""Statements about loops, helpers, containers, numbers that leave the array, types, errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Draw, kind
from .statements import SIGNS


@kind(4)
def rows(d: Draw) -> str:
    a = d.written()
    body = d.pick(["row += 1", "row *= 2.0", "row[...] = 0", "row[0] = 3.0", f"row -= {d.number()}"])
    head = d.pick([f"for row in {a}", f"for row in list({a})", f"for row in {a}.T", f"for k, row in enumerate({a})"])
    return f"{head}:\n    {body}"


@kind(3)
def elements(d: Draw) -> str:
    a, b = d.written(), d.array()
    body = [f"{a}[k] = {b}[k] * 2", f"{a}[k] += {b}[k]", f"{a}[k] = {a}[k - 1] + k", f"{a}[-k:] *= 0.5"]
    return f"for k in range({d.pick(['2', '3'])}):\n    {d.pick(body)}"


@kind(5)
def helper(d: Draw) -> str:
    a = d.written()
    part = f"{a}[{d.basic_key(a)}]"
    texts = [
        f"bump({a})",
        f"bump({part}, {d.beside(a)})",
        f"{d.new()} = halve({a})",
        f"halve({part})",
        f"clear({part})",
    ]
    texts += [f"{d.new()} = normalise({a})", f"clear({a}[:1], {d.written()})", f"{d.new()} = (lambda b: b[1:])({a})"]
    return d.pick(texts)


@kind(3)
def boxed(d: Draw) -> str:
    a, b = d.array(), d.array()
    new = d.new()
    texts = [f"{new} = [{a}, {b}]", f"{new} = {{'a': {a}, 'b': {b}}}", f"{new} = Box({a})", f"{new} = ({a}, {b})"]
    return d.pick([*texts, f"{a}, {b} = {b}, {a}"])


@kind(5)
def box_used(d: Draw) -> str:
    boxes = d.named(lambda box: isinstance(box, list | dict | tuple) or type(box).__name__ == "Box")
    if not boxes:
        return boxed(d)
    box = d.pick(boxes)
    place = place_in(d.variables[box], box, d)
    texts = [f"{place} {d.pick(SIGNS)}= {d.number()}", f"{d.new()} = {place}", f"{place}[0] = 2.0", f"bump({place})"]
    texts += [f"{place} = {d.array()}", f"{d.new()} = {place}[1:]", f"{place} = {place} * 2"]
    return d.pick([*texts, f"store({box}, {0 if isinstance(d.variables[box], list) else repr('a')}, {d.array()})"])


def place_in(value: Any, name: str, d: Draw) -> str:
    if isinstance(value, dict):
        return f"{name}[{d.pick(['a', 'b'])!r}]"
    return f"{name}[{d.below(2)}]" if isinstance(value, list | tuple) else f"{name}.v"


@kind(5)
def number_taken(d: Draw) -> str:
    a = d.array(lambda a: a.size)
    e = f"{a}.flat[0]" if d.random() < 0.2 else f"{a}[{', '.join(['0'] * np.ndim(d.variables[a])) or '()'}]"
    texts = [f"float({e})", f"{e}", f"np.float64({e})", f"{a}.item(0)", f"math.sin({e})", f"np.ravel({a}).tolist()[0]"]
    texts += [f"sum({a}.ravel())", f"np.array([{e}, 1.0])", f"max({a}.ravel())", f"float({a}.sum())"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(1, smooth=False)
def other_number_taken(d: Draw) -> str:
    a = d.array(lambda a: a.size)
    texts = [f"int({a}.flat[0])", f"bool({a}.flat[0])", f"complex({a}.flat[0])", f"f'{{{a}.sum():.2f}}'", f"len({a})"]
    texts += [f"{a}.any()", f"round(float({a}.flat[0]), 1)", f"{a}.tobytes()", f"{a}.argmax()", f"str({a}.dtype)"]
    return f"{d.new()} = {d.pick(texts)}"


@kind(4)
def number_used(d: Draw) -> str:
    found = d.named(lambda s: isinstance(s, float | np.generic) and not isinstance(s, str))
    if not found:
        return number_taken(d)
    s, a = d.pick(found), d.written()
    texts = [f"{s} += 1", f"{d.new()} = {s}", f"{a} *= {s}", f"{a}[0] = {s}", f"{d.new()} = {a} + {s}", f"{s} *= 2.0"]
    return d.pick([*texts, f"{d.new()} = np.full(3, {s})", f"{a}[...] = {s}"])


@kind(2)
def branch(d: Draw) -> str:
    a, b = d.array(lambda a: a.size), d.written()
    tests = [f"{a}.sum() > 0", f"isinstance({a}, np.ndarray)", f"{a}.ndim > 1", f"type({a}) is np.ndarray"]
    tests += [f"isinstance({a}.sum(), float)", f"hasattr({a}, 'flags')", f"{a}.flat[0] > 0", f"len({a}) > 2"]
    tests += [f"np.isscalar({a}.sum())", f"{a} is {b}", f"callable({a})"]
    return f"if {d.pick(tests)}:\n    {b} += 1\nelse:\n    {b} *= 2"


@kind(3)
def caught(d: Draw) -> str:
    a, b = d.array(), d.written()
    tries = [f"{d.new()} = {a}[9] * 2", f"{b}[0] = float({a}[0])", f"{b}[7] = 1.0", f"{d.new()} = {a}.reshape(5, 7)"]
    tries += [f"{b} += np.ones(7)", f"{b}[1:] += {a}[1:]", f"{d.new()} = {a}.nothing", f"{b} += float({a}.sum())"]
    error = d.pick(["Exception", "(IndexError, TypeError)", "ValueError", "TypeError", "LookupError"])
    handler = d.pick([f"{b} += 1", "pass", f"{d.new()} = {a} * 0"])
    return f"try:\n    {d.pick(tries)}\nexcept {error}:\n    {handler}"
