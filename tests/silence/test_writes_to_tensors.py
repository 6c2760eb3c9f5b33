"""Changes in place of what is differentiated at arrays: NumPy's numbers and the right derivative, or refused."""

import gc
import operator
import re
import weakref

import numpy as np
import pytest

import pyop

from . import writing
from .test_numbers_leave_the_record import FIRST, SECOND, differences, second

X = np.array([1.25, 2.5, 0.75])
REMEDY = r"write|np\.where|copy\(\)|no_grad|divide by zero|invalid value"


PROGRAMS = [
    f
    for f in vars(writing).values()
    if callable(f) and f.__module__ == writing.__name__ and f not in (writing.Box, writing.normalise)
]
MUST_BE_RIGHT = [
    *(
        writing.saved_before,
        writing.saved_as_result,
        writing.alias,
        writing.container,
        writing.attribute,
        writing.helper,
        writing.loop,
        writing.with_itself,
        writing.powers,
        writing.accumulated,
    ),
    *(
        writing.in_sum,
        writing.scalar,
        writing.element,
        writing.maximum_of,
        writing.remainders,
        writing.compound,
        writing.through_where,
        writing.view_that_died,
        writing.reshaped_alone,
    ),
    *(writing.half_way, writing.of_another_array, writing.deep_copied),
]


@pytest.mark.filterwarnings("ignore:.*its derivative is compiled")
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
    left = X.copy()
    if not said:
        f(left)
    np.testing.assert_array_equal(given, left)


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
        pyop.grad(writing.an_argument)(w)
    np.testing.assert_array_equal(w.numpy(), 0)
    with pyop.no_grad():
        w += 1
    np.testing.assert_array_equal(w.numpy(), 1)


def test_the_error_names_both_and_the_line():
    with pytest.raises(RuntimeError) as error:
        pyop.grad(writing.view_then_write)(pyop.Tensor(X, requires_grad=True))
    said = str(error.value)
    assert re.search(r"v \+= \.\.\. at .*writing\.py:\d+", said)
    assert "'y'" in said
