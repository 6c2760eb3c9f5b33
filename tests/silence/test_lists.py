"""Lists of symbolic numbers in the place of arrays: what NumPy makes of them, compiled functions make of them too."""

import random
import warnings
from collections import deque, namedtuple

import numpy as np
import pytest

import pyop

from .compare import differs, runs_itself
from .in_all_ways import attempt, kind_of

Pair = namedtuple("Pair", "a b")

# Of one list of numbers, of any depth.
BY_NAME = """
    mean sum prod max min amax std var median ptp argmax argmin sort argsort cumsum cumprod diff sqrt exp sin
    negative abs square sign floor rint isfinite isnan logical_not linalg.norm array asarray asanyarray
    ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d zeros_like ones_like copy stack
    concatenate hstack vstack dstack column_stack size shape ndim nonzero count_nonzero any all unique flip
    nanmean nansum nanmax nan_to_num trapezoid ediff1d gradient ravel transpose squeeze real imag angle conj
    fft.fft fft.rfft fft.fftshift round around flatnonzero argwhere triu diag diagflat cov nancumsum sinc i0
    broadcast_arrays meshgrid block deg2rad cbrt modf frexp iscomplexobj add.reduce multiply.accumulate
    maximum.reduce isreal permute_dims unwrap linalg.det linalg.inv linalg.eigvalsh linalg.cholesky
    linalg.svd linalg.matrix_rank linalg.pinv trace linalg.slogdet fliplr rot90
"""
OF_ONE = {name: eval(f"lambda v, w: np.{name}(v)") for name in BY_NAME.split()}
OF_ONE |= {
    "mean axis": lambda v, w: np.mean(v, axis=0),
    "max initial": lambda v, w: np.max(v, initial=0.25),
    "sum dtype": lambda v, w: np.sum(v, dtype=np.float32),
    "sum where": lambda v, w: np.sum(v, where=[True]),
    "mean keyword": lambda v, w: np.mean(a=v),
    "clip": lambda v, w: np.clip(v, 0.2, 0.7),
    "full_like": lambda v, w: np.full_like(v, 3),
    "array float32": lambda v, w: np.array(v, np.float32),
    "array int": lambda v, w: np.asarray(v, dtype=int),
    "array complex": lambda v, w: np.array(v, dtype=complex),
    "array ndmin": lambda v, w: np.array(v, ndmin=3),
    "array F": lambda v, w: np.array(v, order="F"),
    "reshape": lambda v, w: np.reshape(v, [-1, 1]),
    "tile": lambda v, w: np.tile(v, (2, 1)),
    "repeat": lambda v, w: np.repeat(v, 2),
    "roll": lambda v, w: np.roll(v, 1),
    "take": lambda v, w: np.take(v, [0, -1]),
    "quantile": lambda v, w: np.quantile(v, [0.25, 0.5]),
    "pad": lambda v, w: np.pad(v, 1),
    "sqrt out": lambda v, w: np.sqrt(v, out=np.zeros(np.shape(v))),
    "sqrt where": lambda v, w: np.exp(v, where=np.greater(v, 0.5), out=np.zeros(np.shape(v))),
    "r_": lambda v, w: np.r_[v, 1.0],
    "written": lambda v, w: written(np.array(v)),
    "written copy": lambda v, w: written(np.sqrt(v)),
    "mutated": lambda v, w: mutated(v),
    "split": lambda v, w: np.array_split(v, 2),
    "einsum": lambda v, w: np.einsum("i...->...", v),
    "apply": lambda v, w: np.apply_along_axis(np.sum, 0, v),
    "expand_dims": lambda v, w: np.expand_dims(v, (0, 1)),
    "moveaxis": lambda v, w: np.moveaxis(v, [0], [-1]),
    "argpartition": lambda v, w: np.partition(v, 0),
    "digitize": lambda v, w: np.digitize(v, [0.2, 0.5]),
    "isin": lambda v, w: np.isin(v, [0.5, 2]),
    "vander": lambda v, w: np.vander(v, 3),
    "roots": lambda v, w: np.poly(v),
}
# Of two.
BY_NAME_OF_TWO = """
    dot inner outer vdot matmul kron cross add subtract multiply divide maximum hypot arctan2 fmod copysign
    less equal logical_and allclose isclose array_equal array_equiv convolve correlate polyval interp append
    linalg.solve add.outer heaviside nextafter trapezoid linalg.lstsq float_power union1d intersect1d
    setdiff1d linalg.outer searchsorted logaddexp broadcast_arrays meshgrid average
"""
OF_TWO = {name: eval(f"lambda v, w: np.{name}(v, w)") for name in BY_NAME_OF_TWO.split()}
OF_TWO["tensordot"] = lambda v, w: np.tensordot(v, w, 1)
OF_TWO["interp"] = lambda v, w: np.interp(
    np.real(v), [0.0, 0.5, 1.0], [1.0, *np.real(np.ravel(w))[:2]] if np.size(w) > 1 else [0, 1, 2]
)
OF_TWO["average"] = lambda v, w: np.average(v, weights=w)
OF_TWO |= {
    "where": lambda v, w: np.where(np.greater(v, 0.5), v, w),
    "where list": lambda v, w: np.where([True, False], v, w),
    "select": lambda v, w: np.select([np.greater(v, 0.5)], [w], 2.0),
    "select lists": lambda v, w: np.select([[True], [False]], [v, w]),
    "choose": lambda v, w: np.choose([0, 1], [v, w]),
    "piecewise": lambda v, w: np.piecewise(v, np.less(v, 0.5), [1, 2]),
    "stack two": lambda v, w: np.stack([v, w], axis=-1),
    "concatenate two": lambda v, w: np.concatenate([v, w]),
    "concatenate tuple": lambda v, w: np.concatenate((v, w), axis=0),
    "hstack two": lambda v, w: np.hstack((v, w)),
    "vstack two": lambda v, w: np.vstack([v, w]),
    "column_stack two": lambda v, w: np.column_stack([v, w]),
    "block two": lambda v, w: np.block([[v], [w]]),
    "array of two": lambda v, w: np.array([v, w]),
    "mean of two": lambda v, w: np.mean((v, w), axis=(0, 1)),
    "ragged": lambda v, w: np.sum([v, w[:1]]),
    "clip both": lambda v, w: np.clip(v, w, 3.0),
    "einsum two": lambda v, w: np.einsum("i,i", v, w),
    "einsum sublists": lambda v, w: np.einsum(v, [0], w, [1], [1, 0]),
    "insert": lambda v, w: np.insert(v, [1], w[:1]),
    "lexsort": lambda v, w: np.lexsort((v, w)),
    "multi_dot": lambda v, w: np.linalg.multi_dot([v, w]),
    "cov two": lambda v, w: np.cov(v, w),
    "percentile": lambda v, w: np.percentile(v, np.clip(w, 0, 1)),
    "norm of difference": lambda v, w: np.linalg.norm(np.subtract(v, w)),
    "list plus array": lambda v, w: v + np.asarray(w),
    "array minus list": lambda v, w: np.array(v) - w,
    "array method": lambda v, w: np.array(v).dot(w),
    "assigned": lambda v, w: assigned(v, w),
    "compared": lambda v, w: np.array(v) > w,
    "matmul operator": lambda v, w: np.array(v) @ w,
    "add at": lambda v, w: added(v, w),
    "copyto": lambda v, w: copied(v, w),
    "put": lambda v, w: put(v, w),
    "reduceat": lambda v, w: np.add.reduceat(v, [0, 1]),
    "block rows": lambda v, w: np.block([[np.atleast_2d(v), np.atleast_2d(v)], [np.atleast_2d(w), np.atleast_2d(w)]]),
    "nested": lambda v, w: np.sum([np.mean(v), np.max(w), 1.0]),
}


def written(a):
    a[..., 0] = 7.0
    return a * 2


def mutated(v):
    v = list(v)
    a, b = np.array(v), np.sqrt(v)
    v[0] = 5.0
    return a, b, np.sum(v)


def assigned(v, w):
    a = np.zeros(np.shape(v))
    a[:] = w
    a[0] += v[0]
    return a


def added(v, w):
    a = np.zeros(3)
    np.add.at(a, [0, 1], w)
    return a


def copied(v, w):
    a = np.zeros(np.shape(v))
    np.copyto(a, w)
    return a


def put(v, w):
    a = np.array(v, dtype=float)
    np.put(a, [0], w)
    return a


PROGRAMS = OF_ONE | OF_TWO

# Numbers of one list: arguments of all kinds, what is computed of them, and constants.
NUMBERS = {
    "x[0]": lambda x, t, s, k: x[0],
    "x[1] * 2": lambda x, t, s, k: x[1] * 2,
    "x.sum()": lambda x, t, s, k: x.sum(),
    "x[:1].reshape(())": lambda x, t, s, k: x[:1].reshape(()),
    "t": lambda x, t, s, k: t,
    "t + 1": lambda x, t, s, k: t + 1,
    "s": lambda x, t, s, k: s,
    "s * x[0]": lambda x, t, s, k: s * x[0],
    "k": lambda x, t, s, k: k,
    "1.5": lambda x, t, s, k: 1.5,
    "2": lambda x, t, s, k: 2,
    "True": lambda x, t, s, k: True,
    "float32": lambda x, t, s, k: np.float32(0.3),
    "int8": lambda x, t, s, k: np.int8(3),
    "x[0] > x[1]": lambda x, t, s, k: x[0] > x[1],
    "complex": lambda x, t, s, k: x[2] + 0.5j,
}
ROWS = {
    "x": lambda x, t, s, k: x,
    "x[::-1]": lambda x, t, s, k: x[::-1],
    "float32": lambda x, t, s, k: x.astype(np.float32),
    "constant": lambda x, t, s, k: np.array([1.0, 0.25, 2.0]),
}


def made(rng, depth, n):
    """A function that makes a nested list of what it is given."""
    kind = rng.choice([list, list, tuple])
    if depth > 1:
        parts = [made(rng, depth - 1, n) for _ in range(n)]
    else:
        if n == 3 and rng.random() < 0.15:
            return ROWS[rng.choice(list(ROWS))]
        names = list(NUMBERS) if rng.random() < 0.5 else ["x[0]", "t", "1.5", "x[1] * 2", "x.sum()", "2"]
        parts = [NUMBERS[rng.choice(names)] for _ in range(n)]
    return lambda *given: kind([part(*given) for part in parts])


def program(name, rng):
    depth = 2 if name.startswith("linalg.") and name != "linalg.norm" else rng.choice([1, 1, 1, 2])
    n = 3 if name in ("cross", "linalg.cross") else rng.choice([1, 2, 2, 3])
    a, b = made(rng, depth, n), made(rng, 1 if rng.random() < 0.3 else depth, n)
    f = PROGRAMS[name]
    return lambda x, t, s, k: f(a(x, t, s, k), b(x, t, s, k))


def arguments(rng):
    x = np.array([rng.uniform(0, 1) for _ in range(3)])
    return x, rng.uniform(0, 1), np.float32(rng.uniform(0, 1)), rng.randrange(1, 4)


def wrong(f, rng, compiled):
    """Return what differs in one of three calls, on fresh numbers."""
    for call in range(3):
        given = arguments(rng)
        want = attempt(f, *given)
        got = attempt(compiled, *given)
        if isinstance(want, Exception) or isinstance(got, Exception):
            if type(want) is not type(got) and not (
                isinstance(want, Exception) and isinstance(got, Exception) and isinstance(got, kind_of(want))
            ):
                return f"call {call}: {want!r:.100} in NumPy, here {got!r:.300}"
        elif found := differs(want, got):
            return f"call {call}: {found}"
    return ""


# --- derivatives, batches, graphs

SMOOTH = """
    mean sum prod max std var median sort cumsum diff sqrt exp sin square linalg.norm array asarray atleast_2d copy
    stack concatenate hstack vstack column_stack nanmean trapezoid gradient ravel transpose flip real fft.fft triu diag
    cov block add.reduce linalg.det linalg.inv linalg.slogdet
""".split()  # noqa: SIM905
SMOOTH += ["mean axis", "clip", "reshape", "tile", "repeat", "roll", "take", "pad", "r_", "split", "einsum", "mutated"]
SMOOTH += """
    dot inner outer matmul kron cross add multiply divide hypot arctan2 convolve linalg.solve add.outer average where
    tensordot
""".split()  # noqa: SIM905
SMOOTH += ["stack two", "concatenate two", "vstack two", "array of two", "mean of two", "einsum two", "array method"]
SMOOTH += ["nested", "norm of difference", "list plus array", "array minus list", "matmul operator"]
FLOATS = ["x[0]", "x[1] * 2", "x.sum()", "t", "t + 1", "1.5", "2", "x[2]"]
NUMBERS["x[2]"] = lambda x, t, s, k: x[2]


def smooth(name, rng):
    """A program of an array and a number with one result, and some way to give it the lists."""
    depth = 2 if name.startswith("linalg.") and name != "linalg.norm" else 1
    n = 3 if name == "cross" else rng.choice([2, 3])

    def rows(depth):
        kind = rng.choice([list, tuple])
        if depth == 1:
            parts = [NUMBERS["x[0]"], *[NUMBERS[rng.choice(FLOATS)] for _ in range(n - 1)]]
        else:
            parts = [rows(1) for _ in range(n)]
        return lambda *given: kind([part(*given) for part in parts])

    a, b = rows(depth), rows(1)
    f = PROGRAMS[name]

    def program(x, t):
        found = f(a(x, t, 0, 0), b(x, t, 0, 0))
        leaves = found if isinstance(found, (tuple, list)) else [found]
        return sum(np.sum(np.cos(np.real(y))) for y in leaves)

    return program


def slopes(f, x, t, h=1e-6):
    """Differences: by each element, and by the number."""
    steps = [(h * e, 0.0) for e in np.eye(len(x))] + [(np.zeros(len(x)), h)]
    return np.array([(f(x + dx, t + dt) - f(x - dx, t - dt)) / (2 * h) for dx, dt in steps])


def by_all_ways(f, x, t):
    """Gradients, or values, in the form of `slopes`, by every way that there is to get them."""
    along = (np.ones(3), 1.0)
    yield "grad", lambda: np.append(*pyop.grad(f, (0, 1))(x, t)), 0
    yield "compiled", lambda: np.append(*pyop.compile(pyop.grad(f, (0, 1)))(x, t)), 0
    yield "grad of compiled", lambda: np.append(*pyop.grad(pyop.compile(f), (0, 1))(x, t)), 0
    yield "vjp", lambda: np.append(*pyop.vjp(f, x, t)[1](np.ones(()))), 0
    yield "jvp", lambda: pyop.jvp(f, (x, np.asarray(t)), along)[1], 1
    yield "compiled jvp", lambda: pyop.compile(lambda x, t: pyop.jvp(f, (x, t), along)[1])(x, np.asarray(t)), 1
    yield "vmap", lambda: pyop.vmap(f, (0, None))(np.stack([x, x]), t)[1], 2
    yield "compiled vmap", lambda: pyop.compile(pyop.vmap(f, (0, None)))(np.stack([x, x]), t)[1], 2
    yield "trace", lambda: pyop.trace(f, "float64[3]", "float64[]").run(feeds={"x": x, "t": np.asarray(t)}), 2


def derivative_failures(seeds):
    found = []
    for name in SMOOTH:
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            f = smooth(name, rng)
            x, t = np.array([rng.uniform(0.2, 1) for _ in range(3)]), rng.uniform(0.2, 1)
            want = attempt(f, x, t)
            if isinstance(want, Exception) or not np.isfinite(want):
                continue
            with np.errstate(all="ignore"):
                slope = attempt(slopes, f, x, t)
            if isinstance(slope, Exception):  # of a matrix that is singular
                continue
            right = [slope, slope.sum(), want]
            for way, run, k in by_all_ways(f, x, t):
                got = attempt(run)
                if isinstance(got, np.linalg.LinAlgError):  # the same
                    continue
                if isinstance(got, Exception) or not np.allclose(got, right[k], rtol=1e-4, atol=1e-5):
                    found.append(f"{name}, seed {seed}, {way}: {right[k]!r:.80}, here {got!r:.300}")
    return found


def failures(seeds):
    found = []
    for name in PROGRAMS:
        for seed in seeds:
            rng = random.Random(f"{name} {seed}")
            f = program(name, rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = wrong(f, rng, pyop.compile(f))
            if said:
                found.append(f"{name}, seed {seed}: {said}")
    return found


def test_what_numpy_makes_of_lists_a_plan_makes_of_them():
    assert failures(range(3)) == []


@pytest.mark.campaign
def test_what_numpy_makes_of_many_lists_a_plan_makes_of_them():
    assert failures(range(3, 60)) == []


def test_derivatives_and_batches_of_lists():
    assert derivative_failures(range(1)) == []


@pytest.mark.campaign
def test_derivatives_and_batches_of_many_lists():
    assert derivative_failures(range(1, 30)) == []


# --- programs, each with what is special about it


def stiffness(x):
    k = np.zeros((4, 4))
    for e in range(3):
        i = [e, e + 1]
        k[np.ix_(i, i)] += [[x[e], -x[e]], [-x[e], x[e]]]
    return k


def in_a_loop(x):
    out = np.zeros(3)
    for i in range(1, 3):
        out[i] = np.mean([x[i], i, out[i - 1]])
    return out


def rows_appended(x):
    rows = []
    for v in x:
        rows.append([v, v * 2, 1.0])
    return np.array(rows), np.sum(rows, axis=0), np.linalg.norm(rows)


def taken_apart(x):
    items = [x[0], x[1]]
    a = np.asarray(items)
    items[0] = 9.0
    a[1] = 3.0
    return a, np.asarray(a) is a, np.sum(items)


def diagonal(x):
    d = np.diag(x)
    d[0, 1] = 5.0
    e = np.diag([x[0], 1.0], 1)
    e[-1] += x
    return d, e


def read_only_diagonal(x):
    d = np.diag(np.outer(x, x))
    d[0] = 1.0
    return d


SPECIAL = {
    "stiffness": stiffness,
    "in_a_loop": in_a_loop,
    "rows_appended": rows_appended,
    "taken_apart": taken_apart,
    "diagonal": diagonal,
    "read_only_diagonal": read_only_diagonal,
    "one condition": lambda x: np.piecewise([x[0], x[1]], [x[0] < 0.5, x[1] < 0.5], [1, 2]),
    "a condition each": lambda x: np.piecewise(x, [x < 0.3, x > 0.6], [lambda v: v * 2, 1.0, 0.0]),
    "computed places": lambda x: np.arange(9.0).reshape(3, 3)[np.ix_([np.argmax(x), 0], [np.argmin(x)])] * x[0],
    "taken": lambda x: np.take(np.arange(3.0), [np.argmax(x), 1]) * x[1],
    "shapes and axes": lambda x: np.mean([x, x * 2], axis=(0, 1)) + np.zeros((len(x), 2)) + np.reshape(x, [3, -1]),
    "sizes": lambda x: (np.size([x, x], 0), np.shape([[x[0]]]), np.ndim([x]), np.result_type(np.float32, x)),
    "float32 and float": lambda x: np.sum([x[0].astype(np.float32), 2.0]),
    "float32 alone": lambda x: np.sum([x[0].astype(np.float32), np.float32(2)]),
    "ints and bools": lambda x: np.array([x[0] > 0.5, True, 3]),
    "int8": lambda x: np.array([x.astype(np.int8)[0], 3, np.uint8(200)]),
    "two lengths": lambda x: np.mean([[x[0]], [x[1], x[2]]]),
    "written by a list": lambda x: written_by(x),
    "deeper than what is written": lambda x: assigned(x[:2], [[x[0], x[1]]]),
    "full": lambda x: np.full((2, 2), [x[0], x[1]]),
    "einsum of lists": lambda x: np.einsum("i,ij->j", [x[0], 1.0], [[x[1], 0.0], [2.0, x[2]]]),
    "einsum of sublists": lambda x: np.einsum([x[0], 1.0], [0], [x[1], x[2]], [1], [1, 0]),
    "in operators": lambda x: ([x[0], 1.0, 2.0] * x - (1, 2, x[2]), x > [x[1]] * 3, x @ [x[0], 1.0, 0.0]),
    "at places": lambda x: added_at(x),
    "where": lambda x: np.add([1.0, 2.0], x[:2], where=[x[0], 0.0], out=np.zeros(2)),
    "no attributes": lambda x: np.rollaxis([x[0], x[1]], 0),
    "methods of ufuncs": lambda x: (np.add.reduce([x[0], 1.0]), np.multiply.outer([x[0]], [1.0, x[1]])),
    "named tuple": lambda x: np.mean(Pair(x[0], x[1])),
    "matrices": lambda x: (
        np.linalg.solve([[x[0], 0.5], [0.1, 2 + x[1]]], [1.0, x[2]]),
        np.linalg.eigh([[x[0], 0], [0, 1]]),
    ),
}


def added_at(x):
    a, b = np.zeros((3, 3)), x * 1
    np.add.at(a, (np.argmax(x), np.argmin(x)), x[0])
    np.add.at(b, [0, np.argmax(x)], [x[0], 1.0])
    return a, b


def written_by(x):
    a = np.zeros((2, 2))
    a[0] = [x[0], x[1]]
    a[:, 1] = (x[2], 1)
    b = np.zeros(2, int)
    b[:] = [x[0] * 9, 2.7]
    return a, b


@pytest.mark.parametrize("name", SPECIAL)
def test_a_program(name):
    f = SPECIAL[name]
    compiled = pyop.compile(f)
    for seed in range(3):
        x = np.random.default_rng(seed).random(3)
        want, got = attempt(f, x), attempt(compiled, x)
        if isinstance(want, Exception):
            assert isinstance(got, kind_of(want)), got
        else:
            assert not differs(want, got)


def test_several_numbers_that_are_needed():
    def f(x, t, s, k):
        return np.asarray([[2, True, t], x, (x[1] * 9, t + s, k)], dtype=int)

    x, compiled = np.array([0.5, 2.0, 3.0]), pyop.compile(f)
    for given in ((1.5, 2.5, 3), (-1.5, 0.5, 4), (1.5, 2.5, 3)):
        assert not differs(f(x, *given), compiled(x, *given))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        compiled(x, np.nan, 1.0, 2)


def test_ufuncs_of_scipy():
    special = pytest.importorskip("scipy.special")
    x = np.array([0.5, 1.5])
    for f in (lambda x: special.gammaln([x[0], 2.0 + x[1]]), lambda x: special.xlogy((x[0], 2.0), x)):
        assert not differs(f(x), pyop.compile(f)(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.array([x[0], x[1]], dtype=object),
        lambda x: np.array([x[0], "a"]),
        lambda x: np.mean(deque([x[0], x[1]])),
    ],
)
def test_what_no_plan_can_have_runs_itself(f):
    runs_itself(f, np.ones(2), match=r"cannot hold|was asked for")
