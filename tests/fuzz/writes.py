"""Lines that write, by functions of `written`. What a graph refuses is refused when it is built."""

from __future__ import annotations

from .draw import Draw, Made, kind


@kind(5)
def in_place(d: Draw) -> Made:
    name = d.pick(["aliased", "boxed", "helped", "multiplied", "multiplied", "kept"])
    if d.random() < 0.3:
        return f"{name}($0, {d.number()})", (d.value(),)
    a, b = d.two()
    return f"{name}($0, $1)", (a, b)


@kind(1)
def scalar_in_place(d: Draw) -> Made:
    return "rebound($0)", (d.value(),)


@kind(0.4)
def refused_so_far(d: Draw) -> Made:
    if d.random() < 0.3:
        return "viewed($0)", (d.value(),)
    a, b = d.two()
    return f"{d.pick(['assigned', 'outed'])}($0, $1)", (a, b)
