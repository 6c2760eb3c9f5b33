"""Writes by key, through views and views of views, to what the function has made: every name sees them, with NumPy's
bits, dtypes and errors; derivatives as by complex steps."""

import itertools
import pickle
import warnings

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

RNG = np.random.default_rng(7)
VECTOR = RNG.standard_normal(6)
MATRIX = RNG.standard_normal((4, 5))


def by_element(x):
    y = x * 1.0
    y[1] = x[0] * 2.0
    y[-1] = 3.0
    return y


def by_slice(x):
    y = x * 1.0
    y[1:-1] = 0.5 * (y[:-2] + y[2:])
    return y


def of_a_range(x):
    y = x * 1.0
    y[:3] = range(5, 8)
    return y


def element_after_element(x):
    y = x * 1.0
    for i in range(1, 6):
        y[i] = y[i - 1] * 0.5 + x[i]
    return y, y[::2]


def view_of_a_local(x):
    y = x * 1.0
    v = y[1:]
    v += 1.0
    return y, v


def base_of_a_view(x):
    y = x * 1.0
    v = y[1:]
    y += 1.0
    return v


def views_of_views(x):
    y = x * 1.0
    v = y[::-1]
    w = v[1:4]
    w[0] = 10.0
    y[2] = -5.0
    v *= 2.0
    return y, v, w


def a_view_outlives_its_base(x):
    v = (x * 1.0)[1:][::2]
    v += 1.0
    v[0] = 7.0
    return v, v @ v


def shifted_onto_itself(x):
    y = x * 1.0
    y[1:] += y[:-1]
    y[:-1] = y[1:]
    return y


def lists_masks_and_repeats(x):
    y = x * 1.0
    y[[0, 1]] += 5.0
    y[np.array([2, 2, 3])] = np.stack([x[0], x[1], x[2]])
    y[x > 0.3] = -1.0
    y[np.array([True, False] * 3)] *= 3.0
    return y


def lists_of_elements(x):
    y = x * 1.0
    y[:3] = [x[1], 2, x[0] * x[2]]
    y[[4, 5]] = (x[1], 0.5)
    return y


def into_zeros_like_it(x):
    y = np.zeros_like(x, shape=(8,))
    z = np.empty_like(x)
    for k in range(6):
        y[k + 1] = x[k] ** 2
        z[k] = y[k]
    return y, z


def place_that_is_computed(x):
    y = x * 1.0
    k = np.argmax(x)
    y[k] = 0.0
    y[np.argsort(x)[:2]] = x[:2]
    return y


def rows_of_a_loop(x):
    y = x * 1.0
    for row in y:
        row -= row.mean()
    return y


def read_while_it_is_written(x):
    y = x * 1.0
    total = 0.0
    for k, item in enumerate(y):
        total = total + item
        if k + 1 < 4:
            y[k + 1] = total
    for item in reversed(y):
        y[0] = item
    return total, y


def columns_and_transposes(x):
    y = x * 1.0
    y[:, 0] = y[:, 1] * 2.0
    y.T[2] *= 3.0
    y[1][2] = 9.0
    y[..., -1] = x[:, 0]
    np.swapaxes(y, 0, 1)[3, 1:] = 0.25
    return y, y.sum(), y.sum(axis=0)


def parts_of_a_split(x):
    y = x * 1.0
    a, b = np.split(y, 2, axis=0)
    a[0] = b[0]
    b += a
    top, *rest = y
    top[1] = 2.0
    rest[0][:] = 1.0
    return y, a


def new_axes(x):
    y = x * 1.0
    y[:, None, 1:3] = x[:, None, :1]
    y[None][0, 0, 0] = 4.0
    np.expand_dims(y, 0)[0, 2] = [[1, 2, 3, 4, 5]][0]
    np.squeeze(y[:1])[1:2] = 8.0
    return y


def flipped(x):
    y = x * 1.0
    np.flip(y, 1)[0, :2] = x[0, :2]
    np.rot90(y)[0, 0] = 5.0
    y[::-1][0] = y[0]
    return y


def read_only_views_of_it(x):
    y = x @ x.T
    d = np.diagonal(y)
    wide = np.broadcast_to(y[0], (2, 4))
    y[0] = 1.0
    y[1, 1] = -1.0
    return d * 1.0, wide + 0.0


def rows_at_computed_indices(x):
    y = x * 1.0
    k = np.argmin(x[:, 0])
    v = y[k]
    v += 1.0
    y[k] *= 2.0
    y[k, 1:][0] = 7.0
    copied = y[np.array(1)]
    copied += 1.0
    return y, v, copied


def nested_helpers(x):
    def centre(a):
        a -= a.mean()
        a[0] = 0.0

    y = x * 1.0
    for k in range(3):
        centre(y[k])
    return y


def of_a_list(x):
    y = x * 1.0
    y[:2] = [x[0], x[1]]
    y[2:4] = (1.5, x[0])
    y[[4, 5]] = [[x[0], x[1]]]
    y[5] = x[1]
    return y


VECTORS = [
    of_a_list,
    *(by_element, by_slice, element_after_element, view_of_a_local, base_of_a_view, views_of_views),
    *(a_view_outlives_its_base, shifted_onto_itself, lists_masks_and_repeats, place_that_is_computed),
    *(lists_of_elements, into_zeros_like_it, read_while_it_is_written, of_a_range),
]
MATRICES = [
    *(rows_of_a_loop, columns_and_transposes, parts_of_a_split, new_axes, flipped, read_only_views_of_it),
    *(nested_helpers, rows_at_computed_indices),
]
CASES = [(f, VECTOR) for f in VECTORS] + [(f, MATRIX) for f in MATRICES]
IDS = [f.__name__ for f, _ in CASES]


def same(got, want):
    for a, b in zip(flatten(got)[0], flatten(want)[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).shape == np.asarray(b).shape
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("order", ["C", "F", "reversed"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize(("f", "x"), CASES, ids=IDS)
def test_numpys_bits(f, x, dtype, order):
    x = np.array(x * (1 if dtype != np.int64 else 10)).astype(dtype)
    x = np.array(x[::-1])[::-1] if order == "reversed" else np.asarray(x, order=order)
    kept = x.copy()
    with np.errstate(all="ignore"):
        same(pyop.compile(f)(x), f(x))
        same(pyop.compile(f, optimize=False)(x), f(x))
        same(pyop.compile(f, threads=2)(x), f(x))
    assert np.array_equal(x, kept)


def scalar_of(f):
    return lambda x: sum([np.sum(np.sin(part)) for part in flatten(f(x))[0]])


@pytest.mark.parametrize(("f", "x"), CASES, ids=IDS)
def test_derivatives(f, x):
    g = scalar_of(f)
    if f in (lists_masks_and_repeats, place_that_is_computed):  # of comparisons there is no complex step
        steps = [(g(x + 1e-6 * e) - g(x - 1e-6 * e)) / 2e-6 for e in np.eye(x.size).reshape(-1, *x.shape)]
    else:
        steps = [g(x + 1e-30j * e).imag / 1e-30 for e in np.eye(x.size).reshape(-1, *x.shape)]
    want = np.reshape(steps, x.shape)
    close = {"rtol": 1e-6, "atol": 1e-6} if f in (lists_masks_and_repeats, place_that_is_computed) else {"rtol": 1e-11}
    np.testing.assert_allclose(pyop.compile(pyop.grad(g))(x), want, **close)
    tangent = np.cos(np.arange(x.size)).reshape(x.shape)
    forward = pyop.compile(lambda x, t: pyop.jvp(g, (x,), (t,))[1])(x, tangent)
    np.testing.assert_allclose(forward, np.sum(want * tangent), **close)


def test_second_derivatives():
    g = scalar_of(by_slice)
    x = VECTOR[:4]
    twice = pyop.compile(pyop.hessian(g))(x)
    first = pyop.compile(pyop.grad(g))
    h = 1e-6
    differences = [(first(x + h * e) - first(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(twice, differences, rtol=1e-6, atol=1e-8)


TARGETS = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.complex64]
GIVEN = [
    *(True, 3, -1, 300, 2.75, -0.0, float("nan"), 1e300, 1 + 2j, [1, 2], [True, 2.5], (3, 4)),
    *(
        np.float32(1.5),
        np.int8(-3),
        np.array([1.5, np.inf]),
        np.array([[7]]),
        np.array([[7, 8]]),
        np.array(2.5),
        np.array([1, 2, 3]),
    ),
]


@pytest.mark.parametrize("dtype", TARGETS)
@pytest.mark.parametrize("key", [0, slice(1, 3), (), ..., (..., 0), [0, 2]], ids=repr)
def test_what_is_written_is_converted_as_numpy_does(dtype, key):
    for value in GIVEN:
        for symbolic in (False, True) if isinstance(value, (np.ndarray, np.generic)) else (False,):

            def f(x, value=value, symbolic=symbolic):
                y = x.copy()
                given = value
                if symbolic:
                    zero = x.real.sum() if value.ndim else x.real[0]
                    given = (zero * 0).astype(value.dtype) + value
                y[key] = given
                return y

            x = np.array([1, 0, 1]).astype(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                want = attempt(f, x)
                got = attempt(pyop.compile(f), x)
            if isinstance(got, Exception) and isinstance(got, TypeError) and "write" in str(got):
                continue  # refused, with a remedy
            if isinstance(want, Exception):
                kinds = [k for k in type(want).__mro__ if k is not Exception]
                assert isinstance(got, kinds[0]), (dtype, key, value, got, want)
            else:
                same(got, want)


def attempt(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return error


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (6, IndexError),
        ([0, 6], IndexError),
        (slice(None, None, 0), ValueError),
        ((0, 0), IndexError),
        (1.0, IndexError),
        ("a", IndexError),
    ],
)
def test_what_numpy_refuses(key, error):
    def f(x):
        y = x * 1.0
        y[key] = 1.0
        return y

    def handled(x):
        try:
            return f(x)
        except error:
            return x * 2.0

    with pytest.raises(error):
        f(VECTOR)
    with pytest.raises(error):
        pyop.compile(f)(VECTOR)
    same(pyop.compile(handled)(VECTOR), handled(VECTOR))


def test_what_is_read_only_is_so_before_the_index_is_wrong():
    def f(x):
        d = np.diagonal(x * 1.0)
        try:
            d[7] = 1.0
        except ValueError:
            return x * 2.0
        return x

    same(pyop.compile(f)(MATRIX), f(MATRIX))


def test_sizes_that_do_not_fit():
    def f(x):
        y = x * 1.0
        y[1:3] = x[:3]
        return y

    with pytest.raises(ValueError, match=r"could not broadcast input array from shape \(3,\) into shape \(2,\)"):
        pyop.compile(f)(VECTOR)


def test_named_sizes():
    def f(x):
        y = x * 1.0
        y[x.shape[0] // 2 :] = 0.0
        v = y[1:]
        v += x[:-1]
        y[-1] = x[0]
        return y

    declared = pyop.compile(f, "float64[n]")
    for n in (3, 6):
        same(declared(VECTOR[:n]), f(VECTOR[:n]))


def test_a_number_that_is_not_known():
    def f(x, a, k):
        y = x * 1
        y[k] = a
        y[0:k] *= a
        return y

    for dtype, a, k in itertools.product((np.float64, np.float32, np.int32), (2.5, 3, 1e39), (1, 2)):
        x = np.arange(1, 5).astype(dtype)
        with np.errstate(all="ignore"):
            want, got = attempt(f, x, a, k), attempt(pyop.compile(f), x, a, k)
        if isinstance(want, Exception):
            assert isinstance(got, type(want).__mro__[1] if type(want).__name__[0] == "_" else type(want))
        else:
            same(got, want)


def refused_copy_or_view(x):
    v = np.broadcast_to(x * 1.0, (2, 6)).ravel()
    v *= 2.0
    return v


def refused_dates(x):
    y = x.astype("M8[D]")
    y[0] = y[1]
    return y


def refused_nditer(x):
    return sum(a for a in np.nditer(x * 1.0))


@pytest.mark.parametrize("f", [refused_copy_or_view, refused_nditer])
def test_refused_with_a_remedy(f):
    x, y = VECTOR.copy(), VECTOR.copy()
    with pytest.warns(pyop.RetraceWarning, match=r"write `|np\.stack|copy first|np\.nditer"):
        pyop.compile(f)(x)
    f(y)
    assert np.array_equal(x, y)


def test_runs_itself_with_a_remedy():
    f = refused_dates
    x = np.abs(VECTOR * 1000)
    with pytest.raises(TypeError, match=r"np\.where|np\.stack"):
        pyop.trace(f, x)
    with pytest.warns(pyop.RetraceWarning, match=r"np\.where|np\.stack"):
        got = attempt(pyop.compile(f), x)
    want = attempt(f, x)
    assert type(got) is type(want)
    assert isinstance(want, ValueError) or np.array_equal(got, want)


@pytest.mark.parametrize(("f", "x"), CASES, ids=IDS)
def test_saved_and_pickled(f, x, tmp_path):
    graph = pyop.trace(f, x)
    same(pickle.loads(pickle.dumps(graph)).compile()(x), f(x))
    graph.save(tmp_path / "graph.pyop")
    same(pyop.load(tmp_path / "graph.pyop", trust="imports").compile()(x), f(x))


def test_writes_by_slices_run_natively():
    plan = pyop.trace(element_after_element, VECTOR).compile()
    assert "writes a part, in place" in str(plan.explain())
    assert "calls Python" not in str(plan.explain())


def test_results_of_earlier_calls_stay():
    f = pyop.compile(element_after_element)
    first = f(VECTOR)
    kept = [part.copy() for part in first]
    f(VECTOR * 2)
    same(first, tuple(kept))


def test_a_long_chain_of_views():
    def f(x):
        y = x * 1.0
        v = y
        for _ in range(2000):
            v = v[:]
        v[0] = 1.0
        y[1] = 2.0
        return y, v

    same(pyop.compile(f)(VECTOR), f(VECTOR))
