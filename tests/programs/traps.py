"""Small programs that are easily followed wrongly: who shares whose memory, what is bound and what is written."""

import copy
from collections import namedtuple

import numpy as np

from .registry import kernel


def trap(inputs=lambda r: (r.normal(size=6),)):
    return kernel(lambda r, size: inputs(r), 0, 1)


def matrix(r):
    return (r.normal(size=(4, 5)),)


def two(r):
    return r.normal(size=6), r.normal(size=6)


def bump(a, by=1.0):
    a += by
    return a


def rest(a):
    return a[1:]


@trap()
def alias_through_a_helper(x):
    """What a helper returns is what it was given."""
    y = x.copy()
    z = bump(y)
    z *= 2.0
    return y, z


@trap()
def view_through_two_helpers(x):
    """A view of a view, made elsewhere."""
    y = x * 1.0
    bump(rest(rest(y)), 10.0)
    return y


class Settings:
    """A class whose attribute is an array of the class, not of the object."""

    scale = np.array([1.0, 2.0])

    def __init__(self, field):
        self.field = field


@trap()
def attribute_of_a_class(x):
    """Augmented assignment of an attribute writes into the array and binds it to the object."""
    one, other = Settings(x.copy()), Settings(x)
    one.field += 1.0
    other.field = other.field + one.field
    return one.field, other.field * Settings.scale[0]


@trap(lambda r: ({"u": r.normal(size=4), "v": [r.normal(size=3), r.normal(size=2)]},))
def arrays_in_a_dict(state):
    """Leaves of an argument that is a nest."""
    state["u"] += 1.0
    for a in state["v"]:
        a[0] = state["u"][0]


@trap(lambda r: ({"u": r.normal(size=4)},))
def dict_bound_anew(state):
    """The caller's dict gets another array."""
    state["u"] = state["u"] * 2.0
    state["w"] = state["u"][1:]
    return state


@trap(lambda r: ([r.normal(size=3), r.normal(size=3)],))
def list_of_arguments_swapped(pair):
    """The caller's list in another order."""
    pair[0], pair[1] = pair[1], pair[0]
    pair[0] += 1.0


@trap(two)
def buffers_swapped(u, v):
    """Which array is the result depends on how often they changed names."""
    for _ in range(3):
        v[1:-1] = u[:-2] + u[2:]
        u, v = v, u
    return u


@trap(two)
def elements_swapped(a, b):
    """Elements are numbers, rows would be views."""
    a[0], a[1] = a[1], a[0]
    a[2], b[2] = b[2], a[2]


@trap(matrix)
def rows_swapped(a):
    """Rows are views: the second assignment reads what the first has written."""
    a[0], a[1] = a[1], a[0]


@trap(matrix)
def rows_swapped_by_list(a):
    """By a list they are copies."""
    a[[0, 1]] = a[[1, 0]]
    a[:, [0, -1]] = a[:, [-1, 0]]


@trap()
def backwards_onto_itself(x):
    """Overlap in the other direction."""
    x[:] = x[::-1]
    x[1:] = x[:-1]
    x[::-2] += x[::2]


@trap()
def negative_steps(x):
    """Slices with negative steps and without ends."""
    y = x.copy()
    y[::-1][1:3] = 7.0
    y[-2::-3] -= 1.0
    y[4:1:-1] *= y[1:4]
    return y[::-1]


@trap()
def views_over_iterations(x):
    """A view of the last turn is written in this one."""
    y = x.copy()
    before = y[:1]
    for k in range(1, len(y)):
        now = y[k : k + 1]
        now += before
        before *= 0.5
        before = now
    return y, before


@trap()
def all_views_at_once(x):
    """A list of views of one array."""
    y = np.zeros(6)
    views = [y[k:] for k in range(4)]
    for k, v in enumerate(views):
        v += x[k]
    return y, views[-1]


@trap(matrix)
def transposed_argument(a):
    """Writes into a transpose of an argument."""
    t = a.T
    t[0] = 1.0
    t += np.arange(4.0)
    t[1:, 1:] *= 2.0
    a.T[...] -= 1.0
    return t


@trap(lambda r: (np.asfortranarray(r.normal(size=(4, 3))), r.normal(size=(8, 6))[::2, ::-2]))
def laid_out_in_other_ways(a, b):
    """Columns first; every second, backwards."""
    a[1] += b[1]
    b *= a
    a.ravel()[0] = 9.0
    b.reshape(-1)[0] = 9.0
    return a.reshape(2, 6), b.ravel()


@trap(lambda r: (r.integers(-9, 9, size=5), r.normal(size=5)))
def kinds_of_numbers(k, x):
    """The target's dtype, whatever is written."""
    k[:] = x
    k[0] = 3.9
    k += 2
    y = x.astype(np.float32)
    y += x
    y[0] = 1e-60
    b = np.zeros(5, bool)
    b[:] = x > 0
    b |= k > 0
    c = np.zeros(5, complex)
    c.real = x
    c.imag[1:] = k[1:]
    c *= 1j
    return y, b, c, k / 2


@trap(lambda r: (r.integers(100, 127, size=5).astype(np.int8), r.integers(200, 255, size=5).astype(np.uint8)))
def integers_that_wrap(a, b):
    """Overflow is silent in arrays."""
    a += 100
    b *= 3
    c = a.astype(np.int16) + b
    a[...] = c.astype(np.int8)
    return (a * b).dtype.name, c, b << 3, -b


@trap(lambda r: (np.zeros((0, 3)), np.zeros(0), r.normal(size=3)))
def empty_arrays(a, b, x):
    """Nothing is written, nothing is summed."""
    a += x
    b[:] = 5.0
    for row in a:
        x += row
    x[0:0] = b
    for k in range(len(b)):
        x[k] = 1.0
    return a.sum(axis=0), b.sum(), x


@trap(lambda r: (np.array(r.normal()), np.array(3)))
def no_dimensions(s, n):
    """Arrays of no dimension are written in place, scalars are not."""
    t = s
    s += 1.0
    s[...] = s * 2.0
    u = s[()]
    u += 1.0
    n[()] = 7
    m = n + 1
    m += 1
    return t, u, m, n * 1.0


@trap()
def multiple_targets(x):
    """One array, two names; then one for each."""
    a = b = x * 1.0
    a += 1.0
    a = a * 2.0
    a[0] = b[0] = 5.0
    c, *d = a[0], a[1:], a[2:]
    d[0][0] = 6.0
    return a, b, c, d


Pair = namedtuple("Pair", "left right")


@trap(two)
def named_tuples(a, b):
    """Immutable outside, writable within."""
    p = Pair(a, b[::-1])
    p.left[0] = p.right[0]
    p.right[1:] += p.left[1:]
    q = p._replace(left=p.left * 2.0)
    q.left[...] -= 1.0
    return q, p.left


@trap()
def copies_of_all_kinds(x):
    """Which of them share memory."""
    same = [x, x[:], x.view(), np.asarray(x), x.reshape(-1), np.ravel(x), x.astype(float, copy=False)]
    apart = [x.copy(), +x, np.array(x), x[[0, 1]], x.astype(float), copy.copy(x), np.concatenate([x])]
    for k, a in enumerate(same + apart):
        a[0] += 10.0 ** (k % 3)
    return x, apart


@trap()
def where_and_out(x):
    """Functions that write where they are told to."""
    out = np.zeros(6)
    r = np.sqrt(np.abs(x), out=out, where=x > 0)
    np.add(out[1:], out[:-1], out=out[1:])
    np.copyto(out[:2], -1.0)
    np.clip(x, -0.5, 0.5, out=x)
    np.negative(x[::2], x[1::2])
    return r is out, r, x


@trap(lambda r: (r.normal(size=6), r.integers(0, 6, size=4), r.normal(size=6) > 0))
def indices_of_all_kinds(x, k, m):
    """By list, by array with repeats, by mask, by computed number."""
    x[k] += 1.0
    x[m] *= 2.0
    x[k[0]] = 5.0
    x[[0, -1]] = x[k[:2]]
    x[~m] = x[~m] - x[k[1]]
    np.add.at(x, k, 1.0)
    y = x[k]
    y += 1.0
    return y, x[m].sum()


@trap()
def written_after_it_was_returned_by_a_helper(x):
    """A tuple of views."""

    def ends(a):
        return a[:2], a[-2:]

    y = x + 0.0
    low, high = ends(y)
    y[0] = 100.0
    high[1] = low[0] + 1.0
    return low * 1.0, y


@trap()
def reshaped_and_written(x):
    """Views of another shape."""
    y = x.copy()
    m = y.reshape(2, 3)
    m[1] = 0.0
    m.T[0] += 1.0
    y.shape = (3, 2)
    y[0, 0] = -1.0
    z = np.zeros((2, 3))
    z.flat[1::2] = x[:3]
    z.ravel()[0] = 9.0
    return y, m, z


@trap()
def stacked_and_written(x):
    """What is put together is apart."""
    s = np.stack([x, x])
    s[0] += 1.0
    h = np.hstack([x[:2], x[4:]])
    x[0] = 0.0
    h[0] += 1.0
    return s, h


@trap(matrix)
def diagonals(a):
    """Views along diagonals, written by those that can be."""
    s = a[:4, :4].copy()
    np.fill_diagonal(s, 7.0)
    s[np.arange(4), np.arange(4)[::-1]] = -1.0
    s[np.triu_indices(4, 1)] *= 2.0
    s.reshape(-1)[::5] += 1.0
    return s, np.diagonal(s), np.trace(s)


@trap(lambda r: (r.normal(size=(3, 4, 2)),))
def three_dimensions(a):
    """Axes in other orders, ellipses, new axes."""
    b = a.transpose(2, 0, 1)
    b[0, 1] = 0.0
    a[..., 1] += a[:, :1, 0]
    c = np.moveaxis(a, 1, 0)[1:, None]
    c *= 2.0
    a[:, ::-1][0, 0] = 5.0
    return b, c


@trap(two)
def same_result_twice(a, b):
    """One array under two names of the result."""
    c = a + b
    d = c[:3]
    d += 1.0
    return {"all": c, "some": [d, c]}, c


@trap(lambda r: (r.normal(size=5).astype(np.float32), r.normal(size=5)))
def single_precision_kept(a, b):
    """Sums in the precision of each."""
    s = np.float32(0)
    for k in range(5):
        s += a[k]
    t = 0.0
    for k in range(5):
        t += a[k]
    u = np.zeros(2, np.float32)
    u[0] = b[0]
    u[1] += b[1]
    return s, t, u, a * 0.1, a.sum() * 0.1
