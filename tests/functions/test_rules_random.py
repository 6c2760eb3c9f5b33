"""Random calls of every family, on small arrays of any shape and dtype: what a rule says is true, however little it is
told, and a call that NumPy accepts is never refused."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_cases import Case
from test_rules import compare, infer

from pyop import functions as rules
from pyop.declare.dims import Dim
from pyop.declare.spec import Spec

Call = tuple[tuple[Any, ...], dict[str, Any]]
DTYPES = ["f8", "f8", "f4", "f2", "i8", "i4", "i2", "u1", "u8", "?", "c16", "c8", "O", "m8[s]", "M8[s]", "U2"]
NUMBERS = ["f8", "f4", "i8", "i4", "?", "c16", "u1", "f2"]
NAMES = {3: Dim("n"), 5: Dim("m")}


class Draw:
    """Random shapes, arrays and parameters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.int = self.random.randint

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.pick([0, 1, 1, 2, 2, 3, 3, 5]) for _ in range(self.int(low, high)))

    def any(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> np.ndarray:
        generator = np.random.default_rng(self.int(0, 10**6))
        integers = np.asarray(generator.integers(0, 5, self.shape() if shape is None else shape))
        return integers.astype(dtype or self.pick(DTYPES))

    def number(self, shape: tuple[int, ...] | None = None) -> np.ndarray:
        return self.any(shape, self.pick(NUMBERS))

    def square(self) -> np.ndarray:
        n = self.int(1, 3)
        return self.number((*self.shape(0, 2), n, n)).astype(self.pick(["f8", "f4", "i8", "c16"])) + 7 * np.eye(
            n, dtype="f4"
        )

    def near(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that often broadcasts with this one."""
        sizes = [self.pick([1, size, 2, 3]) if self.random.random() < 0.3 else size for size in shape]
        return tuple(sizes[1:] if self.random.random() < 0.3 else sizes)

    def two(self) -> tuple[np.ndarray, np.ndarray]:
        a = self.number()
        return a, self.number(self.near(a.shape))

    def alike(self) -> list[np.ndarray]:
        shape = self.shape()
        return [self.any(shape), self.any(shape)]

    def axis(self) -> Any:
        return self.pick([None, 0, 1, -1, -2, 2, (0, 1), (0, -1), ()])

    def one_axis(self) -> Any:
        return self.pick([0, 1, -1, -2, 2])

    def flag(self) -> bool:
        return self.pick([False, True])


Maker = Callable[[Draw], Call]
MAKERS: dict[str, Maker] = {}


def calls(names: str, maker: Maker) -> None:
    for name in names.split():
        MAKERS[name] = maker


calls(
    "sum prod mean std var max min nansum nanmax nanmean nanvar ptp any all count_nonzero median nanmedian",
    lambda d: ((d.any(),), {"axis": d.axis(), "keepdims": d.flag()}),
)
calls("argmax argmin nanargmax nanargmin", lambda d: ((d.any(),), {"axis": d.one_axis(), "keepdims": d.flag()}))
calls("cumsum cumprod nancumsum sort argsort", lambda d: ((d.any(),), {"axis": d.pick([None, d.one_axis()])}))
calls("cumulative_sum", lambda d: ((d.number(),), {"axis": d.one_axis(), "include_initial": d.flag()}))
calls(
    "quantile percentile nanquantile",
    lambda d: (
        (d.any(), d.pick([0.5, [0.1, 0.2], np.float32(0.3), np.array([[0.1, 0.2]]), np.array(0.5), 1])),
        {"axis": d.axis(), "keepdims": d.flag()},
    ),
)
calls("average", lambda d: ((d.number(),), {"axis": d.one_axis(), "keepdims": d.flag(), "returned": d.flag()}))
calls(
    "cov corrcoef",
    lambda d: ((d.number(d.shape(0, 2)), *d.pick([(), (d.number(d.shape(1, 2)),)])), {"rowvar": d.flag()}),
)
calls(
    "histogram",
    lambda d: ((d.number(), d.pick([3, [0, 1, 2], "auto"])), {"density": d.flag(), "range": d.pick([None, (0, 3)])}),
)
calls("bincount", lambda d: ((d.any(d.shape(1, 1), "i4"),), {}))
calls("interp", lambda d: ((d.number().real, np.arange(3.0), d.number((3,))), {}))

calls(
    "ravel transpose flip flipud fliplr copy tril triu nonzero argwhere flatnonzero atleast_1d atleast_2d atleast_3d "
    "matrix_transpose real imag iscomplex isreal angle nan_to_num fix sinc round diagflat unique trim_zeros "
    "sort_complex real_if_close isneginf i0 unwrap",
    lambda d: ((d.any(),), {}),
)
calls("reshape", lambda d: ((d.any(), d.pick([(-1,), -1, (2, -1), (-1, 3), (3, 2), (0, -1), (1, -1, 2), (6,)])), {}))
calls("resize", lambda d: ((d.any(), d.pick([3, (2, 2), 0])), {}))
calls("squeeze fft.fftshift", lambda d: ((d.any(), d.axis()), {}))
calls("expand_dims", lambda d: ((d.any(), d.pick([0, 1, -1, (0, 1), (0, -1), (1, 3)])), {}))
calls("moveaxis", lambda d: ((d.any(), d.pick([0, 1, -1, (0, 1)]), d.pick([0, -1, 1, (1, 0), (-1, 0)])), {}))
calls("rollaxis", lambda d: ((d.any(), d.one_axis(), d.int(-3, 4)), {}))
calls("swapaxes", lambda d: ((d.any(), d.one_axis(), d.one_axis()), {}))
calls("roll", lambda d: ((d.any(), d.pick([1, (1, 2)]), d.pick([None, 0, (0, 1), 1])), {}))
calls("rot90", lambda d: ((d.any(), d.int(-3, 4), d.pick([(0, 1), (1, 0), (0, 2), (-1, -2)])), {}))
calls("broadcast_to", lambda d: ((d.any(), d.pick([(2, 3), (3,), 3, (0,), (2, 1, 3), ()])), {}))
calls(
    "lib.stride_tricks.sliding_window_view",
    lambda d: ((d.any(), d.pick([1, 2, (1, 2)])), {"axis": d.pick([None, 0, (0, 1)])}),
)

calls("concatenate", lambda d: ((list(d.two()),), {"axis": d.pick([None, d.one_axis()])}))
calls("stack", lambda d: ((d.alike(),), {"axis": d.one_axis()}))
calls("vstack hstack dstack column_stack", lambda d: ((d.pick([d.alike(), list(d.two())]),), {}))
calls("block", lambda d: ((d.pick([[list(d.two()), list(d.two())], list(d.two()), d.number()]),), {}))
calls("append", lambda d: (d.two(), {"axis": d.pick([None, 0, 1])}))
calls("tile", lambda d: ((d.any(), d.pick([2, (2,), (1, 2), (2, 1, 3), 0, ()])), {}))
calls("repeat", lambda d: ((d.any(), d.pick([2, 0, [1, 2], [2], [1, 0, 2]])), {"axis": d.pick([None, d.one_axis()])}))
calls("pad", lambda d: ((d.any(), d.pick([1, (1, 2), ((1, 2),), ((1, 2), (0, 1)), 0, [1]])), {}))
calls(
    "insert",
    lambda d: (
        (
            d.any(),
            d.pick([0, 1, -1, [0], [0, 1], [1, 1], np.array([0]), [], slice(0, 2)]),
            d.pick([9, d.number(), d.number((2,))]),
        ),
        {"axis": d.pick([None, d.one_axis()])},
    ),
)
calls(
    "delete",
    lambda d: (
        (d.any(), d.pick([0, 1, -1, [0], [0, 1], [0, -1], np.array(0), [], slice(0, 2), [True, False]])),
        {"axis": d.pick([None, d.one_axis()])},
    ),
)
calls(
    "split array_split",
    lambda d: ((d.any(), d.pick([1, 2, 3, [1], [1, 2], [2, 1], [-1], [0, 5]])), {"axis": d.one_axis()}),
)
calls("hsplit vsplit dsplit", lambda d: ((d.any(), d.pick([1, 2, [1]])), {}))
calls("unstack", lambda d: ((d.any(),), {"axis": d.one_axis()}))


def where(d: Draw) -> Call:
    a, b = d.two()
    return (d.number(d.near(a.shape)), a, d.pick([b, 1, 2.5])), {}


def take_along_axis(d: Draw) -> Call:
    a = d.any()
    return (a, np.zeros(d.near(a.shape), int)), {"axis": d.pick([None, d.one_axis()])}


def solve(d: Draw) -> Call:
    a = d.square()
    return (a, d.pick([d.number(a.shape[-1:]), d.number((*a.shape[:-1], 2)), d.number()])), {}


def clip(d: Draw) -> Call:
    a, b = d.two()
    return (a, d.pick([1, 1.5, None, b]), d.pick([3, 2.5, b])), {}


calls("where", where)
calls("take_along_axis", take_along_axis)
calls("clip", clip)
calls(
    "take",
    lambda d: (
        (d.any(), d.pick([0, [0, 1], [[0]], np.array([[0, 1]]), np.array(0)])),
        {"axis": d.pick([None, d.one_axis()])},
    ),
)
calls("choose", lambda d: ((np.zeros(d.shape(0, 2), int), list(d.two())), {}))
calls("select", lambda d: (([d.number(d.shape(0, 2)).astype(bool)] * 2, list(d.two())), {"default": d.pick([0, 1.5])}))
calls(
    "compress",
    lambda d: ((d.pick([[True], [True, False], d.number((2,))]), d.any()), {"axis": d.pick([None, d.one_axis()])}),
)
calls("searchsorted", lambda d: ((d.number(d.shape(1, 1)), d.pick([d.number(), 1.0])), {}))
calls("diagonal trace", lambda d: ((d.number(), d.int(-2, 2), d.one_axis(), d.one_axis()), {}))
calls("diag", lambda d: ((d.any(d.shape(0, 3)), d.int(-3, 3)), {}))
calls("ix_", lambda d: ((d.any(d.shape(1, 1)), d.any(d.shape(1, 1), d.pick(["?", "i8"]))), {}))
calls("packbits", lambda d: ((d.any(None, d.pick(["?", "u1", "f8"])),), {"axis": d.pick([None, d.one_axis()])}))
calls(
    "unpackbits",
    lambda d: ((d.any(None, "u1"),), {"axis": d.pick([None, d.one_axis()]), "count": d.pick([None, 3, -1])}),
)
calls("partition argpartition", lambda d: ((d.number(), d.int(-2, 2)), {"axis": d.pick([None, d.one_axis()])}))
calls("lexsort", lambda d: ((d.pick([tuple(d.alike()), d.number()]),), {"axis": d.one_axis()}))

calls(
    "dot inner vdot outer kron cross tensordot matmul linalg.matmul linalg.outer linalg.vecdot vecdot matvec vecmat "
    "isclose allclose array_equal array_equiv union1d setxor1d intersect1d setdiff1d isin digitize broadcast_arrays",
    lambda d: (
        d.pick([d.two(), (d.number(d.shape(1, 2)), d.number(d.shape(1, 2))), (d.number((2, 3)), d.number((3, 2)))]),
        {},
    ),
)
calls(
    "einsum",
    lambda d: (
        (
            d.pick(["ij,jk", "i...,j...->ij...", "...i,...i", "i,j", "ij,ij->i", "ij,i"]),
            *d.pick([d.two(), (d.number((2, 3)), d.number((3, 2)))]),
        ),
        {},
    ),
)
calls(
    "linalg.inv linalg.det linalg.cholesky linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals linalg.slogdet "
    "linalg.cond linalg.matrix_rank linalg.pinv",
    lambda d: ((d.pick([d.square(), d.square(), d.number()]),), {}),
)
calls("linalg.svd", lambda d: ((d.number(d.shape(1, 3)),), {"full_matrices": d.flag(), "compute_uv": d.flag()}))
calls("linalg.qr", lambda d: ((d.number(d.shape(1, 3)),), {"mode": d.pick(["reduced", "complete", "r", "raw"])}))
calls("linalg.solve", solve)
calls(
    "linalg.norm",
    lambda d: ((d.number(), d.pick([None, 1, 2, np.inf, "fro", "nuc"])), {"axis": d.axis(), "keepdims": d.flag()}),
)
calls(
    "linalg.vector_norm",
    lambda d: ((d.number(),), {"ord": d.pick([1, 2, np.inf]), "axis": d.axis(), "keepdims": d.flag()}),
)
calls("linalg.matrix_norm", lambda d: ((d.number(),), {"ord": d.pick([1, 2, "fro", "nuc"]), "keepdims": d.flag()}))
calls("linalg.matrix_power", lambda d: ((d.square(), d.int(-2, 3)), {}))
calls(
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft",
    lambda d: ((d.any(),), {"n": d.pick([None, 1, 2, 5, 0]), "axis": d.one_axis()}),
)
calls(
    "fft.fft2 fft.ifftn fft.fftn fft.rfft2 fft.rfftn fft.irfft2 fft.irfftn",
    lambda d: (
        (d.number(),),
        d.pick([{}, {"axes": (0,)}, {"s": (4,), "axes": (-1,)}, {"s": (2, -1), "axes": (0, 1)}, {"axes": (0, 0)}]),
    ),
)

calls("zeros_like ones_like", lambda d: ((d.any(),), {"dtype": d.pick([None, "f4"]), "shape": d.pick([None, (2,), 3])}))
calls("full_like", lambda d: ((d.number(), d.pick([1, 2.5, d.number((2,))])), {}))
calls(
    "linspace",
    lambda d: (
        d.two(),
        {
            "num": d.pick([0, 1, 2, 5]),
            "endpoint": d.flag(),
            "retstep": d.flag(),
            "axis": d.pick([0, -1, 1]),
            "dtype": d.pick([None, "f4"]),
        },
    ),
)
calls("logspace", lambda d: (d.two(), {"num": d.pick([0, 1, 3]), "base": d.pick([10.0, 2, d.number()])}))
calls(
    "meshgrid",
    lambda d: ((d.number(d.shape(0, 2)),) * d.int(0, 3), {"sparse": d.flag(), "indexing": d.pick(["xy", "ij"])}),
)
calls("vander", lambda d: ((d.number(d.shape(1, 1)), d.pick([None, 0, 2])), {}))
calls(
    "diff",
    lambda d: (
        (d.any(), d.int(0, 3)),
        {"axis": d.one_axis(), **d.pick([{}, {"prepend": 0}, {"append": d.number((1,))}])},
    ),
)
calls("ediff1d", lambda d: ((d.number(),), d.pick([{}, {"to_end": [1, 2]}])))
calls("gradient", lambda d: ((d.number(), *d.pick([(), (2.0,), (1, 2), (np.arange(3.0),)])), {"axis": d.axis()}))
calls("trapezoid", lambda d: (d.pick([d.two(), (d.number(),)]), {"axis": d.one_axis()}))
calls(
    "convolve correlate",
    lambda d: ((d.number(d.shape(0, 1)), d.number(d.shape(0, 1))), {"mode": d.pick(["full", "same", "valid"])}),
)
calls("polyval", lambda d: ((d.number(d.shape(1, 1)), d.pick([d.number(), 2.0])), {}))
calls("polyadd polysub polymul", lambda d: ((d.number(d.shape(1, 1)), d.number(d.shape(1, 1))), {}))
calls("polyint polyder", lambda d: ((d.number(d.shape(1, 1)), d.int(0, 2)), {}))
calls("poly roots", lambda d: ((d.number(d.shape(1, 2)),), {}))


def described(x: np.ndarray, how: str) -> Spec:
    if how == "names":
        return Spec(x.dtype, tuple(NAMES.get(size, size) for size in x.shape))
    if how == "rank":
        return Spec(x.dtype, (None,) * x.ndim)
    if how == "dtype":
        return Spec(x.dtype)
    return Spec(None, x.shape) if how == "shape" else Spec.of(x)


def mistakes(case: Case) -> list[str]:
    try:
        result = case.func(*case.args, **case.kwargs)
    except Exception:
        return []  # what is refused when NumPy refuses is the subject of test_rules
    found = []
    for how in ("all", "names", "rank", "dtype", "shape"):
        try:
            spec = infer(case, lambda x, how=how: described(x, how))
        except TypeError as error:
            if "known when the graph is built" not in str(error):
                found.append(f"{case.id}, knowing {how}: {error!r}")
        except Exception as error:
            found.append(f"{case.id}, knowing {how}: {error!r}")
        else:
            try:
                compare(spec, result, exact=False, sizes={"n": 3, "m": 5})
            except AssertionError:
                found.append(f"{case.id}, knowing {how}: {spec}")
    return found


def check(seed: int, rounds: int) -> None:
    draw = Draw(seed)
    wrong = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            for name, maker in MAKERS.items():
                function = rules.find(name)
                if function is not None:  # not in this release of NumPy
                    args, kwargs = maker(draw)
                    wrong += mistakes(Case(function, args, kwargs))
    assert not wrong, "\n".join(wrong[:30])


@pytest.mark.parametrize("seed", range(3))
def test_random_calls(seed: int) -> None:
    check(seed, 2)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_calls(seed: int) -> None:
    check(seed, 100)
