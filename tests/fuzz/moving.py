"""Indexing by arrays, joining and splitting."""

from __future__ import annotations

from .draw import RANKED, Draw, Made, kind


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
        # Wrapping takes NumPy as many steps as the index is large, and no end of them where there is nothing.
        modes = [("$1", "raise"), ("$1", "clip"), ("$1 % 9", "wrap")]
        which, mode = d.pick(modes if d.values[a].size else modes[:2])
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
