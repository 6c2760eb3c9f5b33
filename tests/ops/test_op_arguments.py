"""What a function gets: the caller's memory, read-only, in nested calls, frames and threads of its own."""

import sys
import threading
import weakref

import numpy as np
import pytest

import pyop


def address(a):
    return a.__array_interface__["data"][0]


LAYOUTS = {
    "contiguous": lambda: np.arange(24.0).reshape(2, 3, 4),
    "fortran": lambda: np.asfortranarray(np.arange(24.0).reshape(4, 6)),
    "reversed": lambda: np.arange(9.0)[::-1],
    "strided": lambda: np.arange(48.0).reshape(6, 8)[::2, 1::3],
    "broadcast": lambda: np.broadcast_to(np.arange(3.0), (4, 3)),
    "unaligned": lambda: np.frombuffer(bytearray(8 * 5 + 1), np.uint8)[1:].view(np.float64),
    "empty": lambda: np.empty((0, 3)),
    "rank0": lambda: np.array(3.5),
    "rank7": lambda: np.ones((1,) * 7),
    "readonly": lambda: np.frombuffer(b"\0" * 32, np.float64),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments_are_the_callers_memory_read_only(layout):
    a = LAYOUTS[layout]()
    before = a.flags.writeable, a.copy()
    seen = []

    @pyop.op(outputs=())
    def look(x):
        seen.append((type(x), address(x), x.shape, x.strides, x.dtype, x.flags.writeable, x.flags.aligned))

    for _ in range(3):
        look(a)
    assert seen == [(np.ndarray, address(a), a.shape, a.strides, a.dtype, False, a.flags.aligned)] * 3
    assert a.flags.writeable is before[0]
    np.testing.assert_array_equal(a, before[1])


WRITES = {
    "item": lambda x: x.__setitem__(0, 1),
    "inplace": lambda x: x.__iadd__(1),
    "ufunc out": lambda x: np.sin(x, out=x),
    "sort": lambda x: x.sort(),
    "fill": lambda x: x.fill(0),
    "slice": lambda x: x[1:].fill(0),
    "flat": lambda x: x.flat.__setitem__(0, 1),
    "real": lambda x: x.real.fill(1),
    "put": lambda x: np.put(x, 0, 1),
    "byteswap": lambda x: x.byteswap(inplace=True),
    "memoryview": lambda x: memoryview(x).__setitem__(0, 1.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_writing_is_an_error_with_advice(write):
    a = np.arange(5.0)

    @pyop.op("float64[n] -> float64[n]")
    def naughty(x):
        WRITES[write](x)
        return x

    for _ in range(3):
        with pytest.raises((ValueError, TypeError)) as caught:
            naughty(a)
        (note,) = caught.value.__notes__
        assert "naughty" in note
        assert "float64[5]" in note
        assert "read-only" not in str(caught.value) or "mutates=" in note
    np.testing.assert_array_equal(a, np.arange(5.0))


def test_nested_and_recursive_calls_have_views_of_their_own():
    @pyop.op("float64[n], int64[] -> float64[n]")
    def descend(x, depth):
        before = x.copy()
        below = descend(x[::-1] + 1, depth - 1) if depth > 0 else x * 0
        np.testing.assert_array_equal(x, before)
        assert x.shape == before.shape
        return below + x

    a = np.arange(3.0)
    for depth in (0, 5, 40):

        def plain(x, depth):
            return (plain(x[::-1] + 1, depth - 1) if depth > 0 else x * 0) + x

        np.testing.assert_array_equal(descend(a, depth), plain(a, depth))


def test_endless_recursion_is_a_recursion_error():
    @pyop.op("float64[n] -> float64[n]")
    def forever(x):
        return forever(x)

    for _ in range(3):
        with pytest.raises(RecursionError):
            forever(np.ones(2))


def test_the_frames_of_an_exception_keep_the_argument():
    @pyop.op("float64[n] -> float64[n]")
    def fail(x):
        raise ValueError("no")

    errors = []
    for i in range(40):
        try:
            fail(np.full(4, float(i)))
        except ValueError as error:
            errors.append(error)
    for i, error in enumerate(errors):
        tb = error.__traceback__
        while tb.tb_next:
            tb = tb.tb_next
        np.testing.assert_array_equal(tb.tb_frame.f_locals["x"], np.full(4, float(i)))


def test_a_weak_reference_never_sees_another_calls_memory():
    references = []

    @pyop.op("float64[n] -> float64[]")
    def watch(x):
        references.append((weakref.ref(x), x[0]))
        return x[0]

    for i in range(40):
        watch(np.full(3, float(i)))
        for reference, value in references:
            alive = reference()
            assert alive is None or alive[0] == value
        del alive


def test_an_argument_keeps_only_its_own_array_alive():
    class Watched(np.ndarray):
        pass

    owner = np.arange(6.0).view(Watched)
    alive = weakref.ref(owner)
    pyop.op("float64[n] -> float64[]")(lambda x: x.sum())(owner)
    del owner
    assert alive() is None


def test_generators_and_threads_that_hold_views():
    started, results = [], []

    @pyop.op("float64[n] -> float64[]")
    def spawn(x):
        go = threading.Event()
        thread = threading.Thread(target=lambda: (go.wait(10), results.append((x[0], x.sum()))))
        thread.start()
        started.append((thread, go))
        return x.sum()

    for i in range(30):
        spawn(np.full(4, float(i)))
    for thread, go in started:
        go.set()
        thread.join()
    assert sorted(results) == [(float(i), 4.0 * i) for i in range(30)]


def test_many_threads_call_one_op():
    op = pyop.op("float64[n], float64[n] -> float64[n]")(lambda x, y: (x + 0) - y)
    wrong = []

    def work(seed):
        for i in range(2000):
            a = np.full(3, float(seed * 10000 + i))
            if (op(a, a * 2) != -a).any():
                wrong.append(a)

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    finally:
        sys.setswitchinterval(old)
    assert not wrong


@pytest.mark.parametrize(
    ("dtype", "value", "becomes"),
    [
        ("i1", 3, 3),
        ("i1", 300, OverflowError),
        ("i1", [1, -129], OverflowError),
        ("u1", 3, 3),
        ("u1", -1, OverflowError),
        ("u8", -1, OverflowError),
        ("u8", [2**63, 0], None),  # float64 to NumPy
        ("i8", [2**63], OverflowError),
        ("i8", 2**63, OverflowError),
        ("u8", 2**63, 2**63),
        ("i8", 3.0, None),
        ("i8", True, 1),
        ("?", 1, None),
        ("f4", 1, 1),
        ("f4", 0.1, np.float32(0.1)),
        ("f8", 10**400, TypeError),
        ("f8", [1, 2.5, True], [1, 2.5, 1]),
        ("f8", [], []),
        ("c8", 1.5, 1.5),
        ("f8", 1j, None),
        ("f8", np.float32(1), None),
        ("f8", "1", None),
        ("f8", {1}, TypeError),
        ("O", {1}, {1}),
    ],
)
def test_python_numbers_take_the_declared_dtype_if_every_value_survives(dtype, value, becomes):
    op = pyop.op(lambda x: x, inputs=[pyop.Spec(dtype)], outputs=pyop.Spec(dtype), name="f")
    if becomes is None or isinstance(becomes, type):
        with pytest.raises(pyop.InputError, match=r"argument 0 .'x'. of") as caught:
            op(value)
        assert type(caught.value.__cause__) is (becomes or type(None))
    else:
        got = op(value)
        assert got.dtype == dtype
        assert got.tolist() == np.array(becomes, dtype).tolist()
