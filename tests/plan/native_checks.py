"""What the tests of native steps share: a plan held against the NumPy function it stands for."""

import sys
import warnings

import numpy as np

import pyop


def observed(function, *arguments):
    """What a call gives and says: the result, or the kind of error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            result = error
    return result, [str(w.message) for w in caught]


def assert_same(got, want, merged=False):
    """The same bits, layouts and warnings; `merged` calls, which are equal ones, warn once."""
    (a, said), (b, should_say) = got, want
    if isinstance(b, Exception):
        assert type(a) is type(b)
        assert str(a).split("\n")[0] == str(b)
        return
    if isinstance(a, Exception):
        raise a
    assert set(said) == set(should_say) if merged else said == should_say
    several = isinstance(b, tuple | list)
    for x, y in zip(a if several else [a], b if several else [b], strict=True):
        assert_same_array(x, np.asarray(y))


def assert_same_array(a, b):
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()
    # What comes after sums in the order of memory.
    assert [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1] == [
        s for s, n in zip(b.strides, b.shape, strict=True) if n > 1
    ] or b.size < 2


def check(function, *arrays, named=True, threads=2, alike=False, merged=False):
    """Plans, for all sizes if `named` (sizes of one axis `alike`), called twice, against the function.

    None where no graph can be built.
    """
    want = observed(function, *arrays)
    names = [[f"n{0 if alike else k}_{d}" for d in range(x.ndim)] if named else x.shape for k, x in enumerate(arrays)]
    try:
        graph = pyop.trace(function, *(pyop.Spec(x.dtype, n) for x, n in zip(arrays, names, strict=True)))
    except (TypeError, ValueError):
        assert isinstance(want[0], Exception)
        return None
    plan = graph.compile()
    for _ in range(2):
        assert_same(observed(plan, *arrays), want, merged)
    if threads > 1:
        assert_same(observed(graph.compile(threads=threads), *arrays), want, merged)
    assert_same(observed(graph.compile(optimize=False), *arrays), want)
    return plan


def python_calls(plan, *arguments):
    """How many Python functions a call of a plan enters: NumPy's reductions are some.

    But for what NumPy is asked of its buffers once somebody has set its state of errors in this thread.
    """
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        plan(*arguments)
    finally:
        sys.setprofile(None)
    return [name for name in seen if name != "getbufsize"]


def numbers(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 255, shape).astype(dtype)
    x = (
        rng.normal(0, 3, shape) * (rng.random(shape) < 0.9) * np.where(rng.random(shape) < 0.5, 1, -1)
    )  # zeros of both signs
    return (x + 1j * rng.normal(0, 3, shape) if dtype.kind == "c" else x).astype(dtype)
