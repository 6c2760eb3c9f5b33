"""Programs that change in place what they compute: for test_writes_to_tensors.py."""

import copy

import numpy as np

import pyop


class Box:
    def __init__(self, value):
        self.value = value


def normalise(a):
    a -= a.mean()


def saved_before(x):
    y = x * 2
    w = y * y
    y *= 3.0
    return (w * y).sum()


def saved_as_result(x):
    y = np.exp(x)
    y /= y.sum()
    y *= x
    return (y * y).sum()


def alias(x):
    y = x * 1.0
    z = y
    z *= 3.0
    return (y * y).sum()


def container(x):
    state = {"a": [x * 2]}
    y = state["a"][0]
    y += x
    return (state["a"][0] ** 2).sum()


def attribute(x):
    box = Box(x * 2)
    box.value += x * x
    y = box.value
    box.value *= y
    return box.value.sum() + y.sum()


def helper(x):
    y = x * x
    normalise(y)
    return (y**3).sum()


def loop(x):
    y = x * 1.0
    for k in range(4):
        y += 0.1 * y * y * k
    return y.sum()


def with_itself(x):
    y = x + 1
    y *= y
    y += y
    return (y * x).sum()


def powers(x):
    y = x + 1
    y **= 2
    z = y * 1.0
    z **= 0.5
    w = z + y
    w **= 3
    w **= -1.0
    return w.sum()


def accumulated(x):
    total = np.zeros_like(x)
    other = total
    for k in range(3):
        total += x**k
    return (other * other).sum()


def in_sum(x):
    parts = [x * k for k in range(1, 4)]
    total = sum(parts)
    total -= parts[0]
    return (total * parts[1]).sum()


def scalar(x):
    s = x.sum()
    t = s
    s += 1
    s *= x[0]
    return s * t


def element(x):
    y = x * 2
    a = y[0]
    a += 1
    a *= x[1]
    return a + y.sum()


def maximum_of(x):
    m = np.max(x)
    n = m
    m *= 2
    return m * n


def no_dimension(x):
    y = (x.sum() * np.ones(1)).reshape(())
    z = y
    z += x[0]
    return y * y


def product(x):
    y = np.outer(x, x)
    y @= np.outer(x, np.ones(3))
    return y.sum()


def remainders(x):
    y = x * 7
    y %= 2.1
    z = y + x
    z //= 0.5
    return y.sum() + z.sum() * x[0]


def compound(x):
    y = x * 1
    y -= y.min()
    y /= y.max()
    y -= 0.5
    return np.sum(y**2 * x)


def through_where(x):
    y = np.where(x > 1, x, 0.0)
    y += x
    return (y * y).sum()


def view_then_write(x):
    y = x.copy()
    v = y[1:]
    v += 1.0
    return (y * y).sum()


def write_under_view(x):
    y = x.copy()
    v = y[1:]
    y += 1.0
    return (v * v).sum()


def view_that_died(x):
    y = x * 1.0
    y[1:].sum()
    y *= x
    return y.sum()


def rows(x):
    y = np.outer(x, x)
    for row in y:
        row += x
    return (y * y).sum()


def transposed(x):
    y = np.outer(x, x)
    y.T[...] += x
    return y.sum()


def reshaped(x):
    y = x * 2
    z = y.reshape(3, 1)
    z *= 2.0
    return (y * y).sum()


def reshaped_alone(x):
    y = (x * 2).reshape(3, 1)
    y *= 2.0
    return (y * y).sum()


def raveled(x):
    y = x * 2
    np.ravel(y).__imul__(3.0)
    return y.sum()


def diagonal(x):
    y = np.outer(x, x)
    d = np.diagonal(y)
    y *= 2.0
    return d.sum()


def swapped(x):
    y = np.outer(x, x)
    z = np.swapaxes(y, 0, 1)
    y += x
    return (z * z).sum()


def broadcast(x):
    y = np.broadcast_to(x, (2, 3))
    y += 1.0
    return y.sum()


def stopped_alias(x):
    y = x * 2
    c = pyop.stop_gradient(y)
    y += 1.0
    return (c * y).sum()


def an_argument(x):
    x += 1.0
    return (x * x).sum()


def an_argument_by_alias(x):
    y = np.asanyarray(x) if isinstance(x, pyop.Tensor) else x
    y *= 2.0
    return (x * x).sum()


def an_argument_s_view(x):
    v = x[1:]
    v *= 2.0
    return (x * x).sum()


def an_argument_with_no_grad(x):
    with pyop.no_grad():
        x *= 2.0
    return (x * x).sum()


def an_argument_stopped(x):
    c = pyop.stop_gradient(x)
    c += 1.0
    return (x * x).sum()


def elements(x):
    y = x * 1.0
    y[0] = x[1] * x[2]
    return (y * y).sum()


def elements_of_zeros(x):
    y = np.zeros_like(x)
    y[1:] = x[:2] ** 2
    return y.sum()


def element_added(x):
    y = x * 1.0
    y[0] += x[1]
    return (y * y).sum()


def masked(x):
    y = x**3
    y[x > 1.5] = 0
    return y.sum()


def by_integers(x):
    y = x * 1.0
    y[[0, 2]] *= 2.0
    return (y * y).sum()


def an_argument_s_element(x):
    x[1] = 5.0
    return (x * x).sum()


def sorted_in_place(x):
    y = x * 1.0
    y.sort()
    return (y * np.arange(3)).sum()


def filled(x):
    y = x * 1.0
    y.fill(2.0)
    return y.sum()


def copied_to(x):
    y = x * 1.0
    np.copyto(y, x * x)
    return y.sum()


def added_at(x):
    y = x * 1.0
    np.add.at(y, [0, 0], 1.0)
    return y.sum()


def with_out(x):
    y = x * 1.0
    np.multiply(x, x, out=y)
    return y.sum()


def half_way(x):
    y = x * 1.0
    try:
        y += x
        y += np.ones(7)
    except ValueError:
        pass
    return (y * y).sum()


def swallowed(x):
    y = x.copy()
    v = y[:2]
    try:
        v += 1
    except RuntimeError:
        v = v + 1
    return y.sum() + v.sum()


def of_another_array(x):
    cache = np.zeros(3)
    cache[0] = 1.0
    cache += 1
    return (cache * x).sum()


def deep_copied(x):
    y = copy.deepcopy([x * 2])[0]
    y += x
    return (y * y).sum()


def divided_by_zero(x):
    y = x * 2
    try:
        with np.errstate(all="raise"):
            y /= x - x[0]
    except FloatingPointError:
        pass
    return np.sum(y[1:] * y[1:])
