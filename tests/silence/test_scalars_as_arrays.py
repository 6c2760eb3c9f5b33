"""NumPy's scalars have no memory: what is made an array of one is a copy, and writes to that leave the scalar."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import pyop

X = np.array([1.0, 2.0, 4.0])
# Scalars, and arrays of no dimension, which do have memory.
SOURCES = {
    "mean": lambda x: np.mean(x),
    "method": lambda x: x.sum(),
    "element": lambda x: x[1],
    "product": lambda x: x[0] * x[1],
    "norm": lambda x: np.linalg.norm(x),
    "constant": lambda x: np.float64(2.5),
    "of a number": lambda x: np.float64(len(x)),
    "array": lambda x: np.array(2.5) * 1,
    "zeros": lambda x: np.zeros(()),
    "view": lambda x: x[1, ...],
    "reshaped": lambda x: x.sum(keepdims=True).reshape(()),
}
CONVERSIONS = {
    "[...]": lambda s: s[...],
    "[None]": lambda s: s[None],
    "[()]": lambda s: np.asarray(s[()]),
    "atleast_1d": np.atleast_1d,
    "atleast_3d": np.atleast_3d,
    "reshape": lambda s: s.reshape(1),
    "np.reshape": lambda s: np.reshape(s, (1, 1)),
    "flatten": lambda s: s.flatten(),
    "ravel": np.ravel,
    "asarray": np.asarray,
    "array": lambda s: np.array(s, copy=None),
    "squeeze": np.squeeze,
    "expand_dims": lambda s: np.expand_dims(s, 0),
    "transpose": lambda s: s.T,
    "view as it is": lambda s: s.view(),
    "real": np.real,
    "imag": lambda s: np.expand_dims(s.imag, 0),
    "asfortranarray": np.asfortranarray,
    "swapaxes": lambda s: s.reshape(1, 1).swapaxes(0, 1),
    "stack": lambda s: np.stack([s]),
    "astype": lambda s: np.asarray(s.astype(float, copy=False)),
}
WRITES = {
    "*=": lambda w: w.__imul__(0),
    "fill": lambda w: w.fill(9.0),
    "[...] =": lambda w: w.__setitem__(Ellipsis, 7.0),
    "copyto": lambda w: np.copyto(w, 5.0),
    "out=": lambda w: np.add(w, 1, out=w),
    "put": lambda w: np.put(w, 0, 9),
    "flat": lambda w: w.flat.__setitem__(0, 3.0),
}
REFUSED = ("asked for", "cannot be written", "not known", "view")


def results(f: Any) -> Any:
    try:
        found = f(X.copy())
    except Exception as error:
        return error
    return [(type(y), np.asarray(y).tolist()) for y in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("source", SOURCES)
def test_writes_to_what_is_made_of_it(source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = 0
        for conversion, write in itertools.product(CONVERSIONS, WRITES):

            def f(x: Any, conversion: str = conversion, write: str = write) -> Any:
                v = SOURCES[source](x)
                w = CONVERSIONS[conversion](v)
                WRITES[write](w)
                return v + 0, w, v

            want, got = results(f), results(pyop.compile(f))
            if isinstance(want, Exception) or isinstance(got, Exception):
                message = str(got)
                assert isinstance(got, Exception), (source, conversion, write, got)
                assert isinstance(want, Exception) or any(word in message for word in REFUSED), (
                    conversion,
                    write,
                    message,
                )
                continue
            right += 1
            assert [y for _, y in want] == [y for _, y in got], (source, conversion, write)
            loss = lambda x, f=f: np.sum(f(x)[1] * 3) + f(x)[0]
            slope = results(pyop.grad(loss))
            if not isinstance(slope, Exception):
                mine = results(pyop.compile(pyop.grad(loss)))
                assert isinstance(mine, Exception) or np.allclose(mine[0][1], slope[0][1]), (source, conversion, write)
        assert right > 60


def test_an_item_of_a_scalar_cannot_be_written() -> None:
    def f(x: Any) -> Any:
        e = x[0]
        e[0] = 5
        return e

    for g in (f, pyop.compile(f)):
        with pytest.raises(TypeError, match="does not support item assignment"):
            g(X)
