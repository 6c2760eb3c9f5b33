"""Random declarations, random arguments, functions that return random things.

Only pyop's own errors may come out, or what the plain function returns; and which of them, a matcher written
here in a few lines of Python decides.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyop

DTYPES = [
    "?",
    "i1",
    "i4",
    "i8",
    "u2",
    "f2",
    "f4",
    "f8",
    "g",
    "c8",
    "c16",
    "U3",
    "S2",
    "O",
    "M8[s]",
    "m8[D]",
    "V3",
    "i4,f8",
]
NAMES = "nmk"

extents = st.one_of(st.integers(0, 3), st.sampled_from([*NAMES, "_"]))
shapes = st.one_of(st.none(), st.lists(extents, max_size=4), st.lists(extents, max_size=2).map(lambda d: [*d, "..."]))
spec_dtypes = st.sampled_from([*DTYPES, "_", "_", "_", "T", "T"])
specs = st.tuples(spec_dtypes, shapes)


def make(spec):
    dtype, shape = spec
    dims = None if shape is None else pyop.Spec.parse(f"_[{','.join(map(str, shape))}]").shape
    return pyop.Spec(None if dtype == "_" else dtype if dtype == "T" else np.dtype(dtype), dims)


@st.composite
def arrays(draw, dtype=None):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)) if dtype in (None, "_", "T") else dtype)
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    a = np.zeros([s * 2 for s in shape], dtype)
    if dtype.kind in "biufcmM":
        a = (np.arange(a.size) % 100).reshape(a.shape).astype(dtype)
    elif dtype.kind == "O":
        a[...] = "x"
    steps = draw(st.lists(st.sampled_from([2, -2, 1, -1]), min_size=len(shape), max_size=len(shape)))
    a = a[(..., *[slice(None, None, s) if abs(s) == 2 else slice(0, n) for s, n in zip(steps, shape, strict=True)])]
    if draw(st.integers(0, 4)) == 0:
        a = a.astype(dtype.newbyteorder())
    if draw(st.integers(0, 4)) == 0:
        a.flags.writeable = False
    if draw(st.integers(0, 4)) == 0:
        a = a.T
    return a


class Nasty:
    def __array__(self, dtype=None, copy=None):
        raise ValueError("nasty")

    def __iter__(self):
        raise TypeError("nasty")


things = st.one_of(
    arrays(),
    arrays(),
    st.integers(-3, 3),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.builds(Nasty),
    st.just(10**40),
    st.just({}),
    st.just(range(2)),
    st.sampled_from([np.float32(1), np.str_("a"), np.datetime64("2020-01-01"), np.bool_(True)]),
    st.lists(st.one_of(st.integers(0, 9), st.floats(), st.lists(st.integers(0, 3), max_size=2)), max_size=3),
)


def matches(spec, a, bound):
    dtype, shape = spec
    if dtype == "T":
        if bound.setdefault("T", a.dtype) != a.dtype:
            return False
    elif dtype != "_" and a.dtype != np.dtype(dtype):
        return False
    if shape is None:
        return True
    wild = "..." in shape
    fixed = shape[:-1] if wild else shape
    if a.ndim < len(fixed) or (a.ndim > len(fixed) and not wild):
        return False
    for want, size in zip(fixed, a.shape, strict=False):
        if want == "_":
            continue
        if (bound.setdefault(want, size) if isinstance(want, str) else want) != size:
            return False
    return True


def fits_all(declared, values, bound):
    return all(matches(s, v, bound) for s, v in zip(declared, values, strict=True))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())


def native(a):
    return a.astype(a.dtype.newbyteorder("="))


@st.composite
def cases(draw):
    inputs = draw(st.lists(specs, max_size=6))
    used = {d for _, shape in inputs for d in shape or () if d in list(NAMES)}
    typed = any(d == "T" for d, _ in inputs)

    def bindable(spec):
        dtype, shape = spec
        return (dtype != "T" or typed) and all(d not in list(NAMES) or d in used for d in shape or ())

    outputs = draw(st.lists(specs.filter(bindable), max_size=3))
    if draw(st.booleans()):  # arguments made to fit
        bound = {n: draw(st.integers(0, 3)) for n in NAMES}
        kind = draw(st.sampled_from(["f8", "i4"]))

        def fitting(spec):
            dtype, shape = spec
            sizes = [bound.get(d, 2) if isinstance(d, str) else d for d in shape or () if d != "..."]
            return np.ones(sizes, "i8").astype(kind if dtype in "_T" else dtype)

        arguments = [fitting(s) for s in inputs]
        returned = [fitting(s) for s in outputs]
        if draw(st.booleans()):
            returned = [draw(st.one_of(st.just(r), things)) for r in returned]
    else:
        arguments = [draw(st.one_of(arrays(d), things)) for d, _ in inputs]
        returned = draw(st.lists(things, max_size=3))
    return inputs, outputs, arguments, returned


def run_case(case):
    inputs, outputs, arguments, returned = case
    form = tuple(make(s) for s in outputs)
    result = returned[0] if len(returned) == 1 and len(outputs) == 1 else tuple(returned)
    called = []

    def fn(*xs):
        called.append([(x.dtype, x.shape, x.flags.writeable) for x in xs])
        return result

    op = pyop.op(fn, inputs=[make(s) for s in inputs], outputs=form[0] if len(form) == 1 else form)
    plain = all(isinstance(a, np.ndarray) for a in arguments)
    snapshots = [repr(a) for a in arguments]
    bound = {}
    good = fits_all(inputs, [native(a) for a in arguments], bound) if plain else None
    try:
        got = op(*arguments)
    except pyop.InputError:
        assert not called
        assert good is not True
        return "input"
    except pyop.OutputError:
        assert len(called) == 1
        if plain and len(returned) == len(outputs) and all(isinstance(r, np.ndarray) for r in returned):
            assert not fits_all(outputs, [native(r) for r in returned], bound)
        return "output"
    assert good is not False
    assert len(called) == 1
    assert not any(writeable for _, _, writeable in called[0])
    assert [repr(a) for a in arguments] == snapshots
    if not outputs:
        assert got is None
        return "result"
    values = (got,) if len(outputs) == 1 else got
    assert len(values) == len(returned) == len(outputs)
    for value, expected, spec in zip(values, returned, outputs, strict=True):
        assert type(value) is np.ndarray
        if isinstance(expected, np.ndarray):
            assert same(value, native(expected))
            assert value is expected or not expected.dtype.isnative
        elif spec[0] in "_T":
            assert same(value, native(np.asarray(expected)))
    if plain:
        assert fits_all(outputs, values, bound)
    return "result"


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@given(case=cases())
@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
def test_random_calls(case):
    run_case(case)


@pytest.mark.campaign
@given(case=cases())
@settings(max_examples=12_000, deadline=None, suppress_health_check=SLOW)
def test_random_calls_campaign(case):
    run_case(case)
