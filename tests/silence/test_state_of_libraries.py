"""State that a function keeps in modules and objects of installed packages and of the standard library."""

import enum
import functools
import hashlib
import queue

import numpy as np
import pytest

import pyop

X = np.arange(1.0, 5.0)


@pytest.fixture(autouse=True)
def attributes_of_a_package():
    np.PYOP_TEST, np.PYOP_TEST_LIST = 2.0, [2.0]
    yield
    del np.PYOP_TEST, np.PYOP_TEST_LIST


def setting():
    return (lambda x: x * np.PYOP_TEST), lambda: setattr(np, "PYOP_TEST", 3.0)


def list_of_a_package():
    return (lambda x: x * np.PYOP_TEST_LIST[0]), lambda: np.PYOP_TEST_LIST.insert(0, 7.0)


def a_queue():
    held = queue.Queue()
    return (lambda x: x * (1.0 + held.qsize())), lambda: held.put(1)


def cached_result():
    @functools.lru_cache
    def made(n):
        return [2.0] * n

    return (lambda x: x * made(2)[1]), lambda: made(2).insert(1, 7.0)


def value_of_an_enumeration():
    class Kind(enum.Enum):
        FIRST = [2.0]  # noqa: RUF012

    return (lambda x: x * Kind.FIRST.value[0]), lambda: Kind.FIRST.value.insert(0, 7.0)


@pytest.mark.parametrize("case", [value_of_an_enumeration, setting, list_of_a_package, a_queue, cached_result])
def test_what_others_change_is_seen(case):
    f, change = case()
    compiled = pyop.compile(f)
    before = f(X)
    for _ in range(3):
        assert np.array_equal(compiled(X), before)
    assert compiled.cache_info().hits == 2
    change()
    assert not np.array_equal(f(X), before)
    assert np.array_equal(compiled(X), f(X))


@pytest.mark.parametrize("maxsize", [None, 8])
def test_what_a_function_does_to_a_cached_result(maxsize):
    @functools.lru_cache(maxsize)
    def made(n):
        return [2.0] * n

    def f(x):
        made(2).append(1.0)
        return x * len(made(2))

    with pytest.raises(TypeError, match=r"computes something else in the next call"):
        pyop.compile(f)(X)


def test_results_may_be_cached():
    @functools.lru_cache
    def made(n):
        return [2.0] * n

    compiled = pyop.compile(lambda x: x * made(2)[0])
    for n in range(4):
        made(n)
        assert np.array_equal(compiled(X), X * 2)
    assert compiled.cache_info().hits == 3


def counted_in_a_package(x):
    np.PYOP_TEST += 1.0
    return x * np.PYOP_TEST


def taken_from(held):
    for k in range(5):
        held.put(float(k))
    return lambda x: x * held.get()


def hashed(made):
    def f(x):
        made.update(b"x")
        return x * made.digest()[0]

    return f


@pytest.mark.parametrize(
    ("f", "again"),
    [
        (taken_from(queue.SimpleQueue()), taken_from(queue.SimpleQueue())),
        (hashed(hashlib.sha256()), hashed(hashlib.sha256())),
    ],
)
def test_objects_of_c_with_state(f, again):
    compiled = pyop.compile(f)
    with pytest.warns(pyop.RetraceWarning, match=r"calls (_queue|_hashlib)\..*which is not known"):
        first = compiled(X)
    assert np.array_equal([first, compiled(X)], [again(X), again(X)])


@pytest.mark.parametrize("f", [counted_in_a_package, taken_from(queue.Queue())])
def test_what_a_function_changes_in_libraries(f):
    compiled = pyop.compile(f)
    with pytest.warns(pyop.RetraceWarning, match=r"computes something else in the next call"):
        first = compiled(X)
    assert not np.array_equal(first, compiled(X))
