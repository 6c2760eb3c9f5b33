"""Reductions and running sums."""

from __future__ import annotations

from .draw import RANKED, Draw, Made, broadcasts, kind, small


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
