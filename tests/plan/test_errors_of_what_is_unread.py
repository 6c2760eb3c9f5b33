"""What raises in NumPy though nobody reads its result: Python ints that an array of integers cannot hold, writes at
places or of sizes that are known only then, indices of another kind.
"""

import numpy as np
import pytest

import pyop

NUMBERS = (0, 127, 128, 255, 256, 65536, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400)
NUMBERS += (-(2**63) - 1, -(2**63), -32769, -129, -1)
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32")
UFUNCS = (np.add, np.subtract, np.maximum, np.true_divide, np.less, np.equal, np.bitwise_and, np.logical_or, np.hypot)
UFUNCS += (np.power,)  # of bools and ints beyond 64 bits np.logical_or raises, which is taken for a true one here


def said(function, x):
    try:
        with np.errstate(all="ignore"):
            return function(x).tobytes()
    except (OverflowError, TypeError, ValueError, IndexError) as error:
        return type(error), str(error).split("\n")[0]


def forms(ufunc, number):
    def of_an_array(x):
        return ufunc(x, number)

    def in_front(x):
        return ufunc(number, x)

    def of_an_element(x):
        return ufunc(x[0], number)

    def unread(form):
        def f(x):
            form(x)
            return x + x

        return f

    calls = of_an_array, in_front, of_an_element
    return [*calls, *map(unread, calls)]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_as_in_numpy(ufunc):
    for dtype in DTYPES:
        x = np.array([1, 0, 1], dtype)
        for number in NUMBERS[:8] if ufunc is np.logical_or else NUMBERS:
            for f in forms(ufunc, number):
                assert said(pyop.compile(f), x) == said(f, x), (dtype, number)


def unread_store(x):
    part = x[:4] * 2
    part[:] = x[x > 0]
    return x * 2


def unread_put(x):
    part = x * 2
    np.put(part, [len(x) + int(x[0] > 0)], 1.0)
    return x * 2


def unread_take(x):
    np.take(np.arange(4.0), x % 4)
    return x * 2


def unread_sum_of_other_sizes(x):
    x[x > 0] + x[x < 2]
    return x * 2


def unread_sum_beside_a_known_size(x):
    np.bincount(x.astype(int) % 4) + np.arange(4.0)[::2]
    return x * 2


def unread_item(x):
    part = x[x > 0]
    for i in range(3):
        part[i]
    return x * 2


def unread_item_at_a_computed_place(x):
    x[int(np.argmax(x)) * 2]
    return x * 2


def unread_items(x):
    x[np.cumsum(x > 0) * 2]
    return x * 2


def unread_in_a_loop(x):
    part = x * 2
    for i in range(10 if x[0] > 0 else 5):
        part[i] = 2.0
    return x * 2


def unread_in_a_loop_over_elements(x):
    part = x[x > 0]
    for i, item in enumerate(np.hstack([x, x])):
        part[i // 4] = item
    return x * 2


@pytest.mark.parametrize(
    "f",
    [
        unread_in_a_loop,
        unread_in_a_loop_over_elements,
        unread_store,
        unread_put,
        unread_take,
        unread_sum_of_other_sizes,
        unread_sum_beside_a_known_size,
        unread_item,
        unread_item_at_a_computed_place,
        unread_items,
    ],
)
@pytest.mark.parametrize("optimize", [True, False])
def test_unread(f, optimize):
    compiled = pyop.compile(f, optimize=optimize)
    for x in (np.array([-1.0, 2.0, 3.0, 4.0, -5.0]), np.array([1.0, -2.0, 0.0, 4.0, -5.0])):
        assert said(compiled, x) == said(f, x)


def test_a_copy_onto_itself_is_nothing():
    def f(x):
        part = np.diagonal(x)  # read-only
        np.copyto(part, part)
        np.copyto(part, part, where=part > 0)
        return part * 2

    x = np.arange(4.0).reshape(2, 2)
    assert np.array_equal(pyop.compile(f)(x), f(x))
    with pytest.raises(TypeError, match="argument 1 must be"):
        pyop.compile(lambda x: np.copyto(x[0, 0], x[0, 0]))(x)

    one = np.array(1.0)
    one.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pyop.compile(lambda x: np.copyto(x, x))(one)

    def of_a_scalar(x):
        part = x[0, 0]
        np.copyto(part, part)

    with pytest.raises(TypeError, match="argument 1 must be"):
        pyop.compile(of_a_scalar)(x)


def test_one_array_twice_where_the_function_itself_runs():
    def f(x, y, z):
        if x is y:
            return z * np.sin(z.tolist()[0])
        return z * np.cos(z.tolist()[0])

    compiled, x = pyop.compile(f), np.arange(3.0)
    with pytest.warns(pyop.RetraceWarning):
        compiled(x, x, x * 2)
    assert np.array_equal(compiled(x, x, x * 2), f(x, x, x * 2))
    assert np.array_equal(compiled(x, x * 1, x * 2), f(x, x * 1, x * 2))
