"""Small programs whose order of things is easily followed wrongly: calls, ends of loops, exceptions, numbers."""

import contextlib
import functools

import numpy as np

from .traps import bump, matrix, trap, two


@trap()
def generator_of_views(x):
    """Each view is written before the next is made."""

    def windows(a):
        for k in range(len(a) - 1):
            yield a[k : k + 2]

    y = x.copy()
    for w in windows(y):
        w[1] += w[0]
    return y


@trap()
def generator_left_unfinished(x):
    """What stands behind the last yield does not happen."""

    def steps(a):
        for k in range(10):
            a *= 0.5
            yield k
        a[...] = 0.0

    y = x.copy()
    for k in steps(y):
        if k == 2:
            break
    return y


@trap()
def closure_with_nonlocal(x):
    """A count and an array in a closure."""
    count, last = 0, None

    def note(a):
        nonlocal count, last
        count += 1
        last = a[count:]

    for _ in range(3):
        note(x)
        last *= 0.5
    return count, last


@trap(two)
def fibonacci(a, b):
    """Sums, bound anew."""
    for _ in range(5):
        a, b = b, a + b
    return a, b


@trap()
def exception_half_way(x):
    """What was written before it stays."""
    x[0] = 5.0
    x *= 2.0
    x[9] = 1.0
    x[1] = 7.0


@trap()
def exception_caught_half_way(x):
    """And is seen by what comes after."""
    try:
        x[0] = 5.0
        x[9] = 1.0
    except IndexError:
        x[1] = 7.0
    finally:
        x[2] = 8.0
    return x.sum()


@trap()
def own_exception(x):
    """Raised by contents."""
    x[0] = 1.0
    if x[1] > 0:
        raise ValueError("positive")
    x[2] = 3.0
    return x


@trap()
def scalars_are_bound_anew(x):
    """An element, a sum: numbers, which += does not change for others."""
    a = x[0]
    b = a
    a += 1.0
    s = x.sum()
    t = s
    s += a
    s *= b
    return a, b, s, t, x


@trap()
def default_argument(x):
    """A mutable default lives from call to call."""

    def keep(a, seen=[]):  # noqa: B006
        seen.append(a.sum())
        return len(seen)

    keep(x)
    x += 1.0
    return keep(x), x


@trap()
def partials_and_lambdas(x):
    """Late binding: all see the last k."""
    y = x.copy()
    writers = [lambda v: bump(y[k:], v) for k in range(3)]  # noqa: B023
    for w in writers:
        w(1.0)
    functools.partial(bump, y[:2])(by=-1.0)
    return y


@trap(matrix)
def iterated_rows(a):
    """Rows of a loop, rows that are unpacked."""
    for row in a:
        row -= row.mean()
    first, second, *others = a
    first += second
    others[-1][...] = 0.0
    for k, (u, v) in enumerate(zip(a[:2], a[2:], strict=True)):
        u[k] = v.sum()


@trap(matrix)
def nested_loops_with_early_ends(a):
    """Break leaves the inner loop only; else belongs to the loop."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if j == i + 1:
                break
            a[i, j] = i - j
        else:
            a[i, -1] = -9.0
        if i == 2:
            continue
        a[i, 0] += 1.0
    return i, j


@trap()
def counters_after_loops(x):
    """The counter's last value lives on."""
    for k in range(1, 5, 2):
        x[k] = k
    total = 0
    while total < 5:
        total += k
    x[0] = total
    return k, total


@trap()
def list_that_grows(x):
    """A list of numbers, which becomes an array."""
    found = [0.0]
    for k in range(len(x)):
        found.append(found[-1] * 0.5 + x[k])
    return np.array(found), sum(found), max(found)


@trap()
def dict_of_sums(x):
    """Keys by parity."""
    sums = {}
    for k, v in enumerate(x):
        sums[k % 2] = sums.get(k % 2, 0.0) + v
    return sums


@trap()
def recursion(x):
    """Halves of halves, sorted in place."""

    def sift(a):
        if len(a) < 2:
            return
        half = len(a) // 2
        sift(a[:half])
        sift(a[half:])
        a[:] = np.sort(a)

    y = x.copy()
    sift(y)
    y[-1] = 0.0
    return y


@trap()
def context_managers(x):
    """Errors that are suppressed."""
    with contextlib.suppress(IndexError):
        x[0] = 1.0
        x[10] = 2.0
        x[1] = 3.0
    return x / 2.0


@trap(two)
def conditional_alias(a, b):
    """Which one is written depends on what they hold."""
    c = a if a[0] > b[0] else b
    c += 1.0
    d = b if a.sum() > 0 else a
    d[1] = c[0]
    return c


@trap()
def written_on_one_path_only(x):
    """And an array that the function holds is read on all."""
    y = x * 1.0
    z = x if x[0] > 0 else y
    z += 1.0
    return y, HELD[np.arange(3) % 2]


HELD = np.array([0.5, 1.5])


@trap()
def while_with_two_ends(x):
    """Ends by count or by contents."""
    steps = 0
    while True:
        x *= 0.7
        steps += 1
        if np.abs(x).max() < 0.5 or steps == 9:
            break
    return steps


@trap()
def number_of_python(x):
    """Numbers leave, and come back."""
    k = int(abs(x[0]) * 2) % 3
    s = float(x[1])
    t = x[2].item()
    return [s + t] * k, x[k:], round(s, 3) > t, f"{k}"


@trap(lambda r: (r.normal(size=6), 2, 0.5, True))
def numbers_that_are_given(x, n, s, flag):
    """Numbers as arguments: of loops, of products, of branches."""
    for _ in range(n):
        x *= s
    if flag:
        x += n
    return x[:n], n * s


@trap()
def made_in_a_comprehension(x):
    """Arrays of a comprehension, each its own."""
    rows = [np.zeros(3) for _ in range(2)]
    same = [np.zeros(3)] * 2
    rows[0][0] = x[0]
    same[0][0] = x[1]
    return rows, same[1], [v * 2 for v in x if True]


@trap()
def walrus_and_star(x):
    """Bound within expressions."""
    y = (z := x.copy())
    z[0] = 1.0
    head, *tail = z
    total = sum((t := t0) * 2 for t0 in tail)
    return y, head, total, t


@trap()
def global_constant_in_a_loop(x):
    """A table of the module, read by counters."""
    y = np.empty_like(x)
    for k in range(len(x)):
        y[k] = x[k] * WEIGHTS[k % len(WEIGHTS)]
    return y


WEIGHTS = (0.25, 0.5, 0.25)


@trap()
def minimum_by_builtins(x):
    """min, max, sorted, sum, any, all of an array's elements."""
    return min(x), max(x[1], x[2]), sum(x), any(x > 0), all(x < 9), abs(x[0])


@trap(lambda r: (r.normal(size=6), 0.3))
def masked_while(x, limit):
    """Ever fewer elements, until none is left."""
    left = np.abs(x)
    turns = np.zeros(6, int)
    while (left > limit).any():
        turns[left > limit] += 1
        left[left > limit] *= 0.5
    return left, turns


@trap()
def delete_and_rebind(x):
    """Names that die before their memory does."""
    y = x.copy()
    v = y[2:]
    del y
    v += 1.0
    w = v
    v = None
    w[0] = 0.0
    return w
