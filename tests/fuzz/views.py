"""Lines that mostly move no data."""

from __future__ import annotations

import numpy as np

from .draw import RANKED, Draw, Made, kind


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
