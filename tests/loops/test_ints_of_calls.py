"""Ints that a function makes of arrays outside of loops: numbers of the graph, where that can be."""

import math

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

pytestmark = pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")


def count(x, n):
    return n, [n, -n], {"n": n + 1}


def index(x, n):
    return x[n], x[n % 3], x[-1 - n % 5], x[n // 2]


def written(x, n):
    y = x.copy()
    y[n] = -1.0
    y[n % 4] += 2.0
    return y


def in_place(x, n):
    y, s, z = x.copy(), x[0], np.arange(4)
    y *= n
    y -= n
    s *= n
    s += n
    z += n
    z[1:] *= n
    return y, s, z


def looped(x, n):
    s = 0.0
    for k in range(n):
        s = s + x[k]
    for k in range(n, len(x)):
        s = s * 0.5 + x[k]
    return s, n


def carried(x, n):
    m = n
    for k in range(len(x)):
        if x[k] > 0.5:
            m += n
    return m


def arithmetic(x, n):
    return x * n, n / 3, n**2, x / (n + 1), n * 2.5, n % 7, n - 20, 7 - n, n & 6, n ^ 3, abs(n)


def means(x, n):
    return np.sum(x) / n if n else 0.0


def called(x, n):
    return math.sqrt(n), float(n), complex(n), np.sqrt(n), np.float64(n), max(n, 3), min(n, 4)


SYMBOLIC = [count, index, written, in_place, looped, carried, arithmetic, means]


def sliced(x, n):
    return x[:n], x[n:], x[:n].sum(), x[n - 1 : n + 1]


def shapes(x, n):
    return np.zeros(n), np.full((n, 2), 1.5), np.arange(n), np.eye(n + 1), np.repeat(x, n)


def joined(x, n):
    return np.concatenate([x[:n], np.ones(n)]), np.array([n, 1]), np.array([n, 0.5]), np.stack([x[:n], x[:n]])


def texts(x, n):
    return f"{n}", f"{n:03d}", "%d" % n, str(n), repr(n), "ab" * (n % 3)  # noqa: UP031


def looked_up(x, n):
    return {0: "a", 1: "b"}.get(n % 2), n in {3, 5, 7}, [10, 20, 30][n % 3], (1, 2, 3)[n % 3 : n]


def branches(x, n):
    if n > 6:
        return x + 1.0
    if n == 5:
        return x - 1.0
    return -x if n else x


def falls(x, n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def asked(x, n):
    return isinstance(n, int), isinstance(n, np.integer), n.bit_length(), hash(n), divmod(n, 4), 1 << n


def listed(x, n):
    return (
        [1] * n,
        [k * n for k in range(n)],
        sum([n, 1]),
        sorted([n, 4]),
        list(range(n)),
        tuple(x[k] for k in range(n)),
    )


def reshaped(x, n):
    return x[: 2 * n].reshape(n, 2), x[: 2 * n].reshape(2, -1), np.roll(x, n), np.take(x, n), np.delete(x, n)


OTHERS = [called, sliced, shapes, joined, texts, looked_up, branches, falls, asked, listed, reshaped]


def of(f, make):
    """Return a function that gives `f` an int that it makes of an array; the loop has it traced as twins are."""

    def whole(x, mask):
        return f(x, make(x, mask))

    return whole


MAKES = {
    "sum": lambda x, mask: int(mask.sum()),
    "argmax": lambda x, mask: int(np.argmax(x[:9])) + 1,
    "float": lambda x, mask: int(x[0] * 3 + 5),
    "round": lambda x, mask: round(x[0] * 3 + 5),
    "item": lambda x, mask: int(np.count_nonzero(mask)),
    "int32": lambda x, mask: int(mask.sum(dtype=np.int32)),
    "floor": lambda x, mask: math.floor(abs(x[1]) * 2 + 2),
}


def told(tree):
    leaves, form = flatten(tree)
    return form, [(type(x), np.asarray(x).dtype, str(np.asarray(x))) for x in leaves]


def calls(seed):
    r = np.random.default_rng(seed)
    x, mask = r.uniform(-1.0, 1.0, size=24), np.zeros(24, bool)
    mask[: 3 + seed % 6] = True
    return x, mask


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("f", [*SYMBOLIC, *OTHERS])
def test_it_is_what_python_has(f, make):
    whole = of(f, MAKES[make])
    compiled = pyop.compile(whole)
    for seed in range(8):
        x, mask = calls(seed)
        assert told(compiled(x, mask)) == told(whole(x.copy(), mask.copy()))


@pytest.mark.parametrize("f", SYMBOLIC)
def test_one_plan_is_for_all_values(f):
    compiled = pyop.compile(of(f, MAKES["sum"]))
    for seed in range(6):
        compiled(*calls(seed))
    assert compiled._counts()[1] == 1


@pytest.mark.parametrize(
    "value", [np.nan, np.inf, -np.inf, 1e300, 2.0**63, -(2.0**63), -0.0, 0.5, -0.5, 2.5, 1e15 + 0.5]
)
@pytest.mark.parametrize("make", [int, round, math.floor, math.ceil, math.trunc])
def test_a_number_that_is_no_int64(value, make):
    def f(x):
        return make(x[1]), make(x[0])

    compiled = pyop.compile(f)
    for x in (np.array([1.5, 2.5]), np.array([value, 3.0]), np.array([-1.5, value])):
        try:
            wanted = f(x)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error), match=str(error)):
                compiled(x)
        else:
            assert told(compiled(x)) == told(wanted)


@pytest.mark.parametrize("dtype", "bhilBHILfde?")
@pytest.mark.parametrize("make", [int, round, math.floor, math.ceil, math.trunc])
def test_scalars_of_all_dtypes(dtype, make):
    def f(x):
        return make(x[1])

    compiled = pyop.compile(f)
    for x in (np.array([1, 3]).astype(dtype), np.array([0, 5]).astype(dtype)):
        try:
            wanted = f(x)
        except TypeError:
            with pytest.raises(TypeError):
                compiled(x)
        else:
            assert told(compiled(x)) == told(wanted)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_ints_beyond_int64(dtype):
    def f(x):
        n = int(x[0])
        return n + n, n * n, n**3, -n, abs(n), n << 3, n * 2 - 1, n // 2, n % 5

    compiled = pyop.compile(f)
    info = np.iinfo(dtype)
    for value in (3, info.max, info.max // 2 + 1, info.min, info.max - 1, 7):
        x = np.array([value, 1], dtype)
        assert compiled(x) == f(x)
