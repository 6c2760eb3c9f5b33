"""Arrays with rules of their own: masks, indices, names of axes, files, matrices; and what only looks like an array."""

from __future__ import annotations

import tempfile

import numpy as np

from ..arguments import array
from . import program


def masked(seed):
    return np.ma.masked_array(array("f8[4]", seed), mask=[False, True, False, seed % 2 == 1])


def unmasked(seed):
    return np.ma.masked_array(array("f8[4]", seed))


def masked_table(seed):
    return np.ma.masked_array(array("f8[3,2]", seed), mask=[[False, True], [False, False], [True, True]])


def matrix(seed):
    return np.asmatrix(array("f8[2,2]", seed))


def record(seed):
    return np.rec.fromarrays([array("f8[3]", seed), array("i8[3]", seed)], names="a,b")


def structured(seed):
    a = np.zeros(3, [("a", "f8"), ("b", "i8")])
    a["a"] = array("f8[3]", seed)
    return a


def mapped(seed):
    a = np.memmap(tempfile.TemporaryFile(), dtype=float, mode="w+", shape=(4,))  # noqa: SIM115
    a[:] = array("f8[4]", seed)
    return a


def series(seed, first=0):
    import pandas

    return pandas.Series(array("f8[4]", seed), index=[first, first + 1, first + 2, first + 3])


def shifted(seed):
    return series(seed + 1, 2)


def gaps(seed):
    import pandas

    a = array("f8[4]", seed)
    a[1] = np.nan
    return pandas.Series(a)


def frame(seed):
    import pandas

    return pandas.DataFrame({"a": array("f8[3]", seed), "b": array("f8[3]", seed + 1)})


def rows(seed):
    import xarray

    return xarray.DataArray(array("f8[3]", seed), dims="x")


def columns(seed):
    import xarray

    return xarray.DataArray(array("f8[2]", seed), dims="y")


class Kelvin(np.ndarray):
    """A subclass whose products are of another kind."""

    def __mul__(self, other):
        return np.asarray(self) * 100

    def sum(self, *args, **keywords):
        return 273.0


def kelvin(seed):
    return array("f8[3]", seed).view(Kelvin)


class Boxed:
    """Looks like an array of numbers, and has a mean of its own, as tensors of other libraries do."""

    def __init__(self, a):
        self.a = a
        self.shape, self.dtype, self.ndim = a.shape, a.dtype, a.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype=dtype)

    def __mul__(self, other):
        return Boxed(self.a * other)

    def __len__(self):
        return len(self.a)

    def mean(self, axis=None, dtype=None, out=None):
        return float(np.mean(self.a)) + 1000

    def std(self, axis=None, dtype=None, out=None):
        return float(np.std(self.a, ddof=1))


class Protocol(Boxed):
    """Answers NumPy's functions itself."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return "answered"

    def __array_function__(self, function, types, args, keywords):
        return "answered"


def boxed(seed):
    return Boxed(array("f8[3]", seed))


def answering(seed):
    return Protocol(array("f8[3]", seed))


@program(masked)
def mean_of_masked(x):
    return x.mean(), x.sum(), np.mean(x)


@program(masked)
def masked_times_two(x):
    return x * 2


@program(masked)
def root_of_masked(x):
    return np.sqrt(x)


@program(masked, "f8[4]")
def masked_plus_plain(x, z):
    return x + z, z * x


@program("f8[4]", masked)
def plain_plus_masked(x, z):
    return x + z


@program(masked)
def masked_written(x):
    x[0] = 5.0
    x += 1
    return x.sum()


@program(masked)
def mask_asked(x):
    return x.mask.sum(), x.filled(7.0), x.compressed()


@program(masked)
def masked_is_masked(x):
    return 2.0 if np.ma.isMaskedArray(x) else 3.0


@program(unmasked)
def nothing_masked(x):
    return x * 2, x.mean()


@program(masked_table)
def masked_rows(x):
    return x.sum(axis=1), x[0], np.concatenate([x, x])


@program("f8[4]")
def masked_inside(x):
    m = np.ma.masked_array(x, mask=[True, False, False, False])
    return m.sum()


@program("f8[4]")
def masked_by_a_condition(x):
    return np.ma.masked_less(x, 0).mean()


@program(matrix)
def product_of_matrices(x):
    return x * x, x**2, x.T


@program(matrix, "f8[2,2]")
def matrix_and_array(x, z):
    return x * z, x + z, z @ x


@program(matrix)
def row_of_a_matrix(x):
    return x[0], x.sum(axis=0), np.ravel(x)


@program("f8[2,2]")
def matrix_made_inside(x):
    return np.asarray(np.asmatrix(x) * np.asmatrix(x))


@program(record)
def field_of_a_record(r):
    return r.a * 2 + r["b"]


@program(structured)
def field_of_a_structure(s):
    return s["a"] * 2


@program(structured)
def field_of_a_structure_written(s):
    s["a"] += 1
    s["b"][0] = 5
    return s


@program(mapped)
def of_a_file(x):
    return np.asarray(x * 2), float(x.sum())


@program(mapped)
def of_a_file_written(x):
    x += 1
    return np.asarray(x)


@program(kelvin)
def product_of_a_subclass(x):
    return np.asarray(x * 2)


@program(kelvin)
def sum_of_a_subclass(x):
    return x.sum()


@program("f8[3]", kelvin)
def subclass_second(x, z):
    return np.asarray(x + z), z.sum()


@program(lambda seed: {"x": kelvin(seed)})
def subclass_in_a_dict(p):
    return p["x"].sum()


@program(lambda seed: [masked(seed)])
def masked_in_a_list(p):
    return p[0].sum()


@program(boxed)
def mean_of_a_stand_in(x):
    return np.mean(x)


@program(boxed)
def method_of_a_stand_in(x):
    return x.std(), x.mean()


@program(boxed)
def product_of_a_stand_in(x):
    return type(x * 2).__name__


@program(boxed)
def stand_in_as_an_array(x):
    return np.asarray(x) * 2, np.sin(x)


@program("f8[3]", boxed)
def array_and_stand_in(x, z):
    return x + np.asarray(z)


@program(answering)
def functions_of_an_answering_one(x):
    return np.sin(x), np.sum(x)


@program("f8[3]", answering)
def array_and_answering_one(x, z):
    return x + z


@program(series, shifted, needs=["pandas"])
def difference_by_index(a, b):
    return a - b


@program(series, "f8[4]", needs=["pandas"])
def series_and_array(a, b):
    return a * b, b * a


@program(series, needs=["pandas"])
def deviation_of_a_series(a):
    return a.std(), np.std(a)


@program(gaps, needs=["pandas"])
def mean_of_a_series_with_gaps(a):
    return np.mean(a), a.sum(), np.max(a)


@program(series, needs=["pandas"])
def series_by_a_label(a):
    return a[0], a.loc[1], a.iloc[2]


@program(shifted, needs=["pandas"])
def series_by_a_shifted_label(a):
    return a[3]


@program(series, needs=["pandas"])
def series_written(a):
    a[0] = 5.0
    a += 1
    return a.sum()


@program(series, needs=["pandas"])
def series_through_functions(a):
    return np.exp(a), np.where(a > 0, a, 0), np.concatenate([a, a])


@program(frame, needs=["pandas"])
def sum_of_a_frame(d):
    return d.sum(), d["a"] * 2


@program(frame, needs=["pandas"])
def mean_of_a_frame(d):
    return np.mean(d), d - d.mean()


@program(frame, needs=["pandas"])
def column_of_a_frame_written(d):
    d["c"] = d["a"] + d["b"]
    return d["c"].values


@program(lambda seed: {"s": series(seed)}, needs=["pandas"])
def series_in_a_dict(p):
    return p["s"].std()


@program("f8[4]", needs=["pandas"])
def series_made_inside(x):
    import pandas

    return pandas.Series(x).std()


@program("f8[4]", needs=["pandas"])
def series_made_inside_by_index(x):
    import pandas

    return (pandas.Series(x, index=[0, 1, 2, 3]) - pandas.Series(x, index=[3, 2, 1, 0])).to_numpy()


@program(rows, columns, needs=["xarray"])
def sum_by_names_of_axes(a, b):
    return a + b


@program(rows, needs=["xarray"])
def mean_by_a_name(a):
    return a.mean("x"), np.exp(a)


@program(rows, "f8[3]", needs=["xarray"])
def named_and_plain(a, b):
    return a * b


@program(lambda seed: np.array([1.5, None, "t"], dtype=object))
def objects(o):
    return o[0] * 2, o[2]


@program(lambda seed: np.float64(seed), lambda seed: np.array(2.0 * seed))
def scalar_and_no_dimension(a, b):
    return a * b, a + 1
