"""Changes in place of what is differentiated at arrays: NumPy's numbers and the right derivative, or refused."""

import copy
import gc
import operator
import re
import weakref

import numpy as np
import pytest

import pyop

from .test_numbers_leave_the_record import FIRST, SECOND, differences, second

X = np.array([1.25, 2.5, 0.75])
REMEDY = r"write|np\.where|copy\(\)|no_grad"


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


PROGRAMS = [
    *(saved_before, saved_as_result, alias, container, attribute, helper, loop, with_itself, powers, accumulated),
    *(in_sum, scalar, element, maximum_of, no_dimension, product, remainders, compound, through_where),
    *(view_then_write, write_under_view, view_that_died, rows, transposed, reshaped, reshaped_alone, raveled),
    *(diagonal, swapped, broadcast, stopped_alias, an_argument, an_argument_by_alias, an_argument_s_view),
    *(an_argument_with_no_grad, an_argument_stopped, elements, elements_of_zeros, element_added, masked, by_integers),
    *(an_argument_s_element, sorted_in_place, filled, copied_to, added_at, with_out, half_way, swallowed),
    *(of_another_array, deep_copied),
]
MUST_BE_RIGHT = [
    *(saved_before, saved_as_result, alias, container, attribute, helper, loop, with_itself, powers, accumulated),
    *(in_sum, scalar, element, maximum_of, remainders, compound, through_where, view_that_died, reshaped_alone),
    *(half_way, of_another_array, deep_copied),
]


@pytest.mark.parametrize("way", [*FIRST, *SECOND], ids=lambda f: f.__name__)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_write_is_right_or_refused(f, way):
    try:
        expected = (differences if way in FIRST else second)(f, X)
    except (TypeError, ValueError):
        expected = None  # NumPy refuses it too
    given = X.copy()
    said, found = "", None
    try:
        found = way(f, given)
    except Exception as error:
        said = " ".join([str(error), str(error.__cause__), *getattr(error, "__notes__", ())])
    if said:
        assert expected is None or re.search(REMEDY, said), said
        assert f not in MUST_BE_RIGHT or way.__name__ == "under_vmap", said
    else:
        assert expected is not None
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(given, X)


def plainly(f, *args):
    return f(*[a.copy() for a in args])


def recorded(f, *args):
    return pyop.vjp(f, *args)[0]


def moved(f, *args):
    return pyop.jvp(f, args, tuple(map(np.ones_like, args)))[0]


def change(symbol):
    namespace = {}
    exec(f"def f(a, b):\n    y = a * 1\n    z = y\n    z {symbol} b\n    return y", namespace)
    return namespace["f"]


OPERATORS = ["+=", "-=", "*=", "/=", "**=", "//=", "%=", "@="]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("way", [recorded, moved])
@pytest.mark.parametrize("b", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("a", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.filterwarnings("ignore")
def test_bits_dtypes_and_errors_are_numpys(symbol, a, b, way):
    f = change(symbol)
    operands = [RNG.normal(size=(17, 17)).astype(kind) + 2 for kind in (a, b)]
    operands = [x + x.dtype.type(1j) * RNG.normal(size=(17, 17)) if x.dtype.kind == "c" else x for x in operands]
    operands = [x.astype(kind) for x, kind in zip(operands, (a, b), strict=True)]
    try:
        expected = plainly(f, *operands)
    except TypeError as error:
        with pytest.raises(type(error)):
            way(f, *operands)
        return
    found = way(f, *operands)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.zeros(3, int).__iadd__(x),
        lambda x: (x > 1).__iadd__(x),
        lambda x: (x * 1).__iadd__(1j),
        lambda x: (x * 1).__iadd__(np.ones((2, 3))),
        lambda x: (x * 1).__iand__(1),
        lambda x: (x * 1).__ilshift__(x),
        lambda x: np.argsort(x).__itruediv__(2),
        lambda x: np.broadcast_to(x * 1, (2, 3)).__iadd__(x),
        lambda x: operator.iadd(x * 1, "a"),
    ],
)
@pytest.mark.parametrize("way", [recorded, moved])
def test_where_numpy_raises_so_does_this(f, way):
    with pytest.raises((TypeError, ValueError)) as expected:
        f(X)
    with pytest.raises((TypeError, ValueError)) as found:
        way(f, X)
    assert isinstance(found.value, TypeError) == isinstance(expected.value, TypeError)


def test_in_place_where_the_operand_is_no_tensor():
    def f(x):
        y = x * 1
        y += np.arange(3)
        y -= 1
        y *= [1.0, 2.0, 3.0]
        y /= np.float32(2)
        return y.sum()

    np.testing.assert_allclose(pyop.grad(f)(X), differences(f, X), rtol=1e-5)


def test_nothing_is_written_while_recorded_and_all_is_where_not():
    x = pyop.Tensor(X.copy(), requires_grad=True)
    y = x * 2
    memory = y.numpy()
    with pytest.raises(RuntimeError, match=r"y \+= .*'memory'.*write 'y = y \+ b'"):
        y += 1
    del memory
    before = y.numpy().copy()
    handle = y
    y += 1
    assert y is handle
    assert y.grad_fn is not None
    np.testing.assert_array_equal(y.numpy(), before + 1)
    with pyop.no_grad():
        memory, version = y.numpy(), y._version
        y += 1
        assert y.numpy() is memory
        assert y._version == version + 1
    total = pyop.Tensor(np.zeros(3))
    memory = total.numpy()
    total += 1.0
    assert total.numpy() is memory
    np.testing.assert_array_equal(memory, 1)


def test_what_was_saved_is_the_old_value():
    x = pyop.Tensor(X.copy(), requires_grad=True)
    y = x * 2
    first, square = y.grad_fn, y * y
    old = weakref.ref(y)
    y *= y
    y += square
    assert old() is y
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 16 * X)
    assert first is not y.grad_fn


def test_moves_leave_no_cycles():
    x = pyop.Tensor(X.copy(), requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        y = x * 2
        for _ in range(50):
            y += y * y * 1e-3
            y -= np.exp(y) * 1e-3
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_retained_gradients_and_hooks():
    class Double(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x *= 2
            return x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    for write in (Double.apply, lambda y: y.__imul__(2)):
        x, seen = pyop.Tensor(X.copy(), requires_grad=True), []
        y = x * 1
        y.retain_grad()
        y.register_hook(lambda g, seen=seen: seen.append(np.array(g)))
        y = write(y)
        (y * 3).sum().backward()
        np.testing.assert_array_equal(y.grad.numpy(), 3)  # of the new value
        np.testing.assert_array_equal(seen[0], 6)  # of the value it was asked of
        np.testing.assert_array_equal(x.grad.numpy(), 6)
        assert y.retains_grad


def test_moves_in_nested_transformations():
    def inner(x, a):
        y = x * a
        y *= y
        return y.sum()

    def outer(a):
        y = pyop.grad(inner)(X, a)
        z = y
        z += a
        return (y * y).sum()

    def plain_outer(a):
        y = 2 * X * a * a
        return float(((y + a) ** 2).sum())

    a = np.array(1.5)
    slope = (plain_outer(a + 1e-6) - plain_outer(a - 1e-6)) / 2e-6
    np.testing.assert_allclose(pyop.grad(outer)(a), slope, rtol=1e-6)
    np.testing.assert_allclose(pyop.jvp(outer, (a,), (np.ones(()),))[1], slope, rtol=1e-6)
    np.testing.assert_allclose(pyop.jacobian(pyop.grad(outer), mode="forward")(a), pyop.hessian(outer)(a), rtol=1e-9)


def test_the_users_own_tensors_are_theirs_again_after_a_transformation():
    w = pyop.Tensor(X.copy(), requires_grad=True)
    slope = pyop.grad(lambda w: (w * w).sum())(w)
    with pyop.no_grad():
        w -= 0.5 * slope
    np.testing.assert_array_equal(w.numpy(), 0)
    with pytest.raises(RuntimeError, match="argument"):
        pyop.grad(an_argument)(w)
    np.testing.assert_array_equal(w.numpy(), 0)
    with pyop.no_grad():
        w += 1
    np.testing.assert_array_equal(w.numpy(), 1)


def test_the_error_names_both_and_the_line():
    with pytest.raises(RuntimeError) as error:
        pyop.grad(view_then_write)(X)
    said = str(error.value)
    assert re.search(r"v \+= \.\.\. at .*test_writes_to_tensors\.py:\d+", said)
    assert "'y'" in said
