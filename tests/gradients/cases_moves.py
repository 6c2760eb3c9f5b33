"""Functions that move elements: shapes, indexing, joining."""

import numpy as np

from .case import A, C, b, c, case, fixed, group, i, named, only, s

# --- shapes
group("shapes")
for func, rest, options in (
    (np.reshape, ((35,),), {}),
    (np.reshape, ((7, 5),), {"order": "F"}),
    (np.ravel, (), {}),
    (np.transpose, (), {}),
    (np.transpose, ((1, 0),), {}),
    (np.swapaxes, (0, 1), {}),
    (np.moveaxis, (0, -1), {}),
    (np.rollaxis, (1,), {}),
    (np.expand_dims, (1,), {}),
    (np.expand_dims, ((0, -1),), {}),
    (np.flip, (), {}),
    (np.flip, (0,), {}),
    (np.fliplr, (), {}),
    (np.flipud, (), {}),
    (np.rot90, (), {"k": 3}),
    (np.roll, (2,), {}),
    (np.roll, ((1, 2),), {"axis": (0, 1)}),
    (np.tile, ((2, 3),), {}),
    (np.tile, (2,), {}),
    (np.repeat, (3,), {}),
    (np.repeat, (2,), {"axis": 1}),
    (np.tril, (), {}),
    (np.triu, (), {"k": 1}),
    (np.diag, (), {}),
    (np.diagonal, (), {}),
    (np.trace, (), {}),
    (np.atleast_3d, (), {}),
    (np.pad, (((1, 2), (0, 3)),), {"mode": "constant"}),
):
    unknown = func in (np.flip, np.diag, np.diagonal) or (rest in (((1, 2),), (2,)) and func in (np.roll, np.tile))
    (only if unknown else case)(func, A, *rest, **options)
only(np.matrix_transpose, C)
only(np.transpose, C)
only(np.pad, A, 2, mode="reflect")
only(np.pad, A, ((1, 1), (0, 2)), mode="edge")
only(np.pad, A, 1, mode="constant", constant_values=4.0)
only(np.repeat, A, np.arange(5), axis=0)
only(np.resize, s(5), (4, 3))
only(np.diag, s(5), k=1)
only(np.diagflat, s(5))
only(np.diagonal, s(3, 5, 7), 1, 0, 2)
only(np.trace, s(3, 5, 7), 1, 2, 0)
only(np.squeeze, s(5, 1, 7))
only(np.squeeze, s(5, 1, 1), axis=1)
only(np.atleast_1d, s())
only(np.atleast_2d, s(5))
only(np.broadcast_to, s(5, 1), (3, 5, 7))
only(np.fft.fftshift, s(5, 7))
only(np.fft.ifftshift, s(5, 7), axes=1)
only(np.reshape, s(0, 7), (7, 0))

# --- indexing
group("indexing")
for label, key in {
    "int": 2,
    "slice": slice(1, 4),
    "negative step": slice(None, None, -2),
    "ellipsis": (Ellipsis, 1),
    "newaxis": (None, slice(None), 3),
    "list": [0, 2, 2],
    "mask": np.arange(5) % 2 == 0,
    "pairs": (np.array([0, 1, 1]), np.array([2, 3, 3])),
    "mixed": (slice(1, 3), np.array([0, 0, 6])),
    "empty": slice(0, 0),
}.items():
    named(f"x[{label}]", lambda x, key=key: x[key], A)
named("x[int] complex", lambda x: x[1], C)
only(np.take, A, [0, 3, 3])
only(np.take, A, np.array([[0, 1], [3, 3]]), axis=1)
only(np.take, s(5), 2)
only(np.take_along_axis, A, np.argsort(A, axis=1), axis=1)
only(np.compress, np.arange(5) % 2 == 0, A, axis=0)
only(np.extract, np.arange(35).reshape(5, 7) % 3 == 0, A)
only(np.delete, A, 2, axis=0)
only(np.where, b(5, 7), s(5, 7), s(7))
case(np.where, b(5, 7), s(5, 7), s(5, 7))
only(np.where, b(5, 7), s(5, 7), 1.0)
only(np.where, b(5), c(5), s(1))
only(np.select, [b(5), b(5)], [s(5), s(5)], 0.0)
only(np.choose, i(5, high=3), [s(5), s(5), s(1)])

# --- joining
group("joining")
for func in (np.concatenate, np.vstack, np.hstack, np.stack, np.dstack):
    (only if func is np.dstack else case)(func, [s(5, 7), s(5, 7)])
    only(func, [s(5), s(5), s(5)])
case(np.concatenate, [s(5, 7), s(2, 7)], axis=0)
case(np.concatenate, [s(5, 2), s(5, 7), s(5, 2)], axis=-1)
only(np.concatenate, [s(5, 7), s(3)], axis=None)
only(np.concatenate, [s(5), c(3)])
only(np.stack, [s(5), s(5)], axis=-1)
only(np.column_stack, [s(5), s(5, 2)])
case(np.append, s(5), s(2))
only(np.append, s(5, 7), s(1, 7), axis=0)
fixed(np.block, [[s(2, 2), s(2, 3)], [s(1, 2), s(1, 3)]])
named("split", lambda x: np.split(x, [2, 4]), s(6, 7), fixed=True)
named("array_split", lambda x: np.array_split(x, 3, axis=1), s(5, 7), fixed=True)
named("split, one part", lambda x: np.split(x, 3)[1] ** 2, s(6), fixed=True)
named("hsplit", lambda x: np.hsplit(x, [3]), s(5, 7), fixed=True)
named("vsplit", lambda x: np.vsplit(x, [3]), s(5, 7), fixed=True)
named("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y), s(5, 1), s(7))
named("meshgrid", lambda x, y: np.meshgrid(x, y), s(5), s(7))
named("meshgrid ij", lambda x, y: np.meshgrid(x, y, indexing="ij"), s(5), s(7))
if hasattr(np, "unstack"):
    named("unstack", lambda x: np.unstack(x, axis=1), s(5, 3), fixed=True)
