"""Fused groups: any layout, conversions, reductions at the end, out=, memory written over, threads, warnings."""

import itertools

import numpy as np
import pytest
from native_checks import assert_same, observed

import pyop

RNG = np.random.default_rng(0)


def plans_of(f, *arrays):
    """Every way to run an expression: symbolic sizes, each pass left out, several threads."""
    fixed = pyop.trace(f, *[pyop.Spec.of(a) for a in arrays])
    graphs = [fixed]
    if len({a.shape for a in arrays}) == 1:  # names of sizes are shared
        specs = [pyop.Spec(a.dtype, [f"n{d}" for d in range(a.ndim)]) for a in arrays]
        graphs.append(pyop.trace(f, *specs))
    for graph in graphs:
        yield graph.compile()
        yield graph.compile(threads=2)
    for name in pyop.Graph.passes():
        yield fixed.compile(disable=[name])


def check(f, *arrays):
    want = observed(f, *arrays)
    before = [a.copy() for a in arrays]
    for plan in plans_of(f, *arrays):
        for _ in range(2):
            assert_same(observed(plan, *arrays), want, merged=True)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, before, strict=True))
    return pyop.trace(f, *[pyop.Spec.of(a) for a in arrays]).compile().report()


def layouts(shape, dtype="float64"):
    a = RNG.normal(size=shape).astype(dtype)
    doubled = np.empty([2 * n for n in shape], dtype)
    doubled[tuple(slice(None, None, 2) for _ in shape)] = a
    shifted = np.empty(a.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape)
    shifted[...] = a
    yield a
    yield np.asfortranarray(a)
    yield doubled[tuple(slice(None, None, 2) for _ in shape)]
    yield a[tuple(slice(None, None, -1) for _ in shape)]
    yield shifted
    yield a[:1]
    yield np.broadcast_to(a[..., :1], shape)


@pytest.mark.parametrize("shape", [(5,), (37, 20), (40, 30, 3), (600, 2), (0, 3)])
def test_every_pair_of_layouts(shape):
    for a, b in itertools.product(layouts(shape), layouts(shape)):
        if 0 not in shape or a.shape == b.shape:
            report = check(lambda a, b: (a * b + a - 2.0, np.exp(a) * b), a, b)
            assert report["native"] >= 4


def test_elements_repeated_beside_fortran_order():
    for a, b in itertools.product(layouts((37, 20)), repeat=2):
        check(lambda a, b: np.square(a) * b, a, b)


@pytest.mark.parametrize(
    "shapes",
    [[(600, 3), (3,)], [(600, 3), (600, 1)], [(2, 500), (1, 500), (2, 1)], [(4, 5, 6), (5, 1), (6,)], [(7,), ()]],
)
def test_broadcasting_operands(shapes):
    arrays = [RNG.normal(size=shape) for shape in shapes]
    report = check(lambda *xs: sum((x * xs[0] for x in xs), 1.0) - xs[0], *arrays)
    assert (report["groups"], report["instructions"]) == (1, 1)


def test_results_lie_in_memory_as_those_of_numpy():
    a, b = RNG.normal(size=(2, 7, 5))
    for x, y in itertools.product(
        [a, np.asfortranarray(a), a.T.copy().T, a[:, ::-1]], [b, np.asfortranarray(b), b[:1]]
    ):
        want = x * y - x
        got = pyop.trace(lambda x, y: x * y - x, pyop.Spec.of(x), pyop.Spec.of(y)).compile()(x, y)
        assert got.strides == want.strides


@pytest.mark.parametrize(
    "dtypes", list(itertools.combinations(["bool", "int8", "uint16", "int32", "int64", "float32"], 2))
)
def test_conversions_happen_inside(dtypes):
    a, b = (RNG.integers(0, 2 if d == "bool" else 50, 700).astype(d) for d in dtypes)
    report = check(lambda a, b: (a + b) * 1.5 - b, a, b)
    assert report["groups"] == 1
    check(lambda a, b: np.where(a > b, a, b).astype("float64") + a, a, b)


def test_a_number_may_be_an_array_of_one():
    for one in (np.array(3.0), np.array([3.0]), np.array([[3.0]])):
        for x in (RNG.normal(size=600), RNG.normal(size=(30, 20))):
            check(lambda x, one: (x * one + one, one * one), x, one)


@pytest.mark.parametrize("n", [1, 7, 8, 127, 128, 129, 511, 512, 513, 1000, 4096, 100_001])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_reductions_at_the_end(n, dtype):
    a, b = (RNG.normal(0, 5, size=n).astype(dtype) for _ in range(2))
    report = check(lambda a, b: np.sum(a * b + a), a, b)
    assert report["instructions"] == 1
    check(lambda a, b: (np.prod(a * b), np.max(a - b), np.min(a - b, keepdims=True), a - b), a, b)
    check(lambda a, b: np.sum(a - b, initial=3) + np.add.reduce(b + b), a, b)
    check(lambda a, b: (a - np.sum(a * b)) * b, a, b)
    check(lambda a, b: (np.any(a > b), np.all(a + b < 100)), a, b)


@pytest.mark.parametrize(
    "shape", [(13, 17), (1000, 3), (3, 1000), (2, 70_000), (5, 1), (1, 5), (7, 4, 130), (4, 129, 9), (2, 0)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_rows_are_reduced_where_they_are_computed(shape, dtype):
    a, b = (RNG.normal(0, 5, size=shape).astype(dtype) for _ in range(2))
    last = tuple(range(1, len(shape)))
    if a.size:
        check(lambda a: (np.max(np.abs(a), axis=-1), np.min(-a, axis=last, keepdims=True)), a)
    check(lambda a, b: (np.add.reduce(a * b, axis=-1), np.prod(a + b, axis=last, keepdims=True), a * b), a, b)
    check(lambda a: np.sum(a * np.float32(3), axis=-1, initial=2.0, keepdims=True) - a, a)
    check(lambda a, b: np.sum(a - b[0], axis=-1), a, b)
    for order in "CF":
        check(lambda a: (np.sum(a + a), np.sum(a + a, axis=-1), np.sum(a * a, axis=0)), np.array(a, order=order))


@pytest.mark.parametrize("shape", [(7,), (1000,), (30, 40), (3, 7, 500)])
def test_means_end_a_group(shape):
    for dtype in ("float64", "float32"):
        a = RNG.normal(0, 5, size=shape).astype(dtype)
        check(lambda a: (np.mean(a * a), np.mean(a - 1, axis=-1), np.mean(a + a, axis=-1, keepdims=True) * a), a)
        check(lambda a: np.mean(a * a * np.float32(1e-22) * np.float32(1e-20)), a)  # the division underflows
    assert pyop.trace(lambda a: np.mean(a * a), pyop.Spec.of(a)).compile().report()["instructions"] == 1


def test_only_the_last_axes_end_a_group():
    x = RNG.normal(size=(13, 17, 5))
    for axis, instructions in {(0, 1, 2): 1, (1, 2): 1, -1: 1, (2, 1): 1, 0: 2, (0, 2): 2, 1: 2}.items():
        plan = pyop.trace(lambda x, axis=axis: np.sum(x * x, axis=axis), pyop.Spec.of(x)).compile()
        assert plan.report()["instructions"] == instructions
        check(lambda x, axis=axis: np.sum(x * x, axis=axis), x)


def test_threads_do_not_divide_rows():
    for shape in ((1000, 900), (3, 300_000), (900_001,), (100_000, 9)):
        a, b = RNG.normal(size=shape), RNG.normal(size=shape[-1:])
        f = lambda a, b: (np.sum(a * b + a, axis=-1), np.max(a - b, axis=-1), np.sum(a * b), np.mean(a * a, axis=-1))
        graph = pyop.trace(f, pyop.Spec.of(a), pyop.Spec.of(b))
        expected = f(a, b)
        for threads in (1, 2, 3, 4):
            for x, y in zip(graph.compile(threads=threads)(a, b), expected, strict=True):
                np.testing.assert_array_equal(x, y, strict=True)


# --- warnings


@pytest.mark.parametrize("n", [3, 1000, 200_000])
def test_each_call_warns_in_its_own_name_and_turn(n):
    a = np.ones(n)
    a[n // 2] = 0.0
    a[-1] = 1e300
    check(lambda a: ((1.0 / a) * 1e300 * a * 1e300, np.log(a - 1.0), np.sqrt(-a)), a)
    check(lambda a: np.sum(a * 1e10), np.full(n, 1e298))


@pytest.mark.parametrize("kind", ["ignore", "raise", "call"])
def test_errstate_is_that_of_the_caller(kind):
    a = np.array([1.0, 0.0, -1.0])
    seen = []
    f = lambda a: np.log(a) * (1.0 / a)
    plan = pyop.trace(f, "float64[n]").compile()
    outcomes = []
    for g in (f, plan):
        with np.errstate(all=kind, call=lambda *args: seen.append(args)):
            outcomes.append(observed(g, a))
        outcomes.append(list(seen))
        seen.clear()
    assert_same(outcomes[2], outcomes[0], merged=True)
    assert outcomes[3] == outcomes[1]


# --- where results are written


def test_out_is_computed_in_place():
    a, b = RNG.normal(size=(2, 1000))
    f = lambda a, b: a * b - a + np.sin(b)
    plan = pyop.trace(f, "float64[n]", "float64[n]").compile()
    want = f(a, b)
    for out in (np.empty(1000), np.empty(2000)[::2], np.empty(1000)[::-1]):
        assert plan(a, b, out=out) is out
        assert np.array_equal(out, want)
    for target in range(2):
        xs = [a.copy(), b.copy()]
        assert plan(*xs, out=xs[target]) is xs[target]
        assert np.array_equal(xs[target], want)
    buffer = np.concatenate([a, b])
    plan(buffer[:1000], buffer[1:1001], out=buffer[2:1002])
    assert np.array_equal(buffer[2:1002], f(np.concatenate([a, b])[:1000], np.concatenate([a, b])[1:1001]))


def test_out_over_an_input_still_warns_rightly():
    a, b = np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.0, 1e308])
    f = lambda a, b: (a / b) * b * 10.0
    want = observed(f, a, b)
    plan = pyop.trace(f, "float64[n]", "float64[n]").compile()
    assert_same(observed(lambda a, b: plan(a, b, out=a), a.copy(), b), want, merged=True)
    assert_same(observed(lambda a, b: plan(a, b, out=b), a, b.copy()), want, merged=True)


def test_several_outputs_into_arrays_of_the_caller():
    a = RNG.normal(size=50)
    plan = pyop.trace(lambda a: (a + 1.0, a * 2.0, np.sum(a * a)), "float64[n]").compile()
    outs = [np.empty(50), None, np.empty(())]
    got = plan(a, out=outs)
    assert got[0] is outs[0]
    assert got[2] is outs[2]
    assert all(np.array_equal(x, y) for x, y in zip(got, (a + 1.0, a * 2.0, np.sum(a * a)), strict=True))
    same = np.empty(50)
    plan(a, out=(same, same, None))  # one of them wins, as when they are copied
    assert np.array_equal(same, a * 2.0) or np.array_equal(same, a + 1.0)


def test_a_dying_temporary_is_written_over_and_nothing_else_is():
    kept = []

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def fresh(x):
        result = x + 1.0
        if len(kept) < 2:
            kept.append(result)
        return result

    def f(x):
        y = fresh(x)
        return np.sqrt(y * y) - y * 3.0

    plan = pyop.trace(f, "float64[n]").compile()
    for n in (10, 5000):
        x = np.arange(float(n))
        want = np.sqrt((x + 1.0) * (x + 1.0)) - (x + 1.0) * 3.0
        for _ in range(3):
            assert np.array_equal(plan(x), want)
    # what the function has kept is still what it returned
    assert all(np.array_equal(r, np.arange(10.0) + 1.0) for r in kept[:2])


def test_threads_share_large_arrays_with_the_same_result():
    a, b, c = RNG.normal(size=(3, 600_001))
    f = lambda a, b, c: np.sin(a) * b + np.where(c > 0, c, -a)
    graph = pyop.trace(f, *["float64[n]"] * 3)
    want = f(a, b, c)
    for threads in (1, 2, 3, 7):
        assert np.array_equal(graph.compile(threads=threads)(a, b, c), want)


# --- bisecting


def test_every_pass_has_a_name_and_can_be_left_out():
    g = pyop.trace(lambda x: np.sum(x * 2.0 + x * 2.0), "float64[n]")
    names = list(g.passes())
    assert {"prune", "merge", "fold", "views", "casts", "fuse", "schedule", "in-place"} <= set(names)
    assert g.compile().report()["merged"] == 1
    assert g.compile(disable=["merge"]).report()["merged"] == 0
    assert g.compile(disable=["fuse"]).report()["instructions"] == 3
    assert g.compile(disable=["loops"]).report()["native"] == 0
    with pytest.raises(ValueError, match=r"no pass 'unroll'.*passes\(\)"):
        g.compile(disable=["unroll"])
    with pytest.raises(TypeError, match=r"disable=\['fuse'\]"):
        g.compile(disable="fuse")


# --- what random programs found


def test_single_elements_keep_the_bits_of_their_strides():
    for f in (lambda x: x * x, np.arccosh, lambda x: x**x):
        for dtype in ("float32", "float64", "complex64"):
            x = np.array([3.17, 4.45]).astype(dtype)
            check(f, x[1:2][::-1])
    check(lambda x, y: np.power(x, y), np.array(4.45, "f"), np.array([0.5], "f"))


def test_a_converted_array_that_repeats_elements_is_laid_out_as_numpy_does():
    x = RNG.normal(size=(1, 3))
    for f in (lambda x: x.astype("F"), lambda x: np.var(x.astype("F")), lambda x: x.astype("f") + 1):
        plan, y = pyop.trace(f, "float64[4, 3]").compile(), np.broadcast_to(x, (4, 3))
        np.testing.assert_array_equal(plan(y), f(y), strict=True)
        assert plan(y).strides == np.asarray(f(y)).strides


def test_what_does_not_move_to_numpy_does_not_move_here():
    """power squares what has the exponent 2, if that is a number to the loop: of other last bits than pow()."""
    functions = {
        "in a group": lambda x: np.power(np.maximum(x, 1e30), np.minimum(x, 2.0)),
        "an array": lambda x: np.power(1e30, x),
        "two arrays": lambda x: np.power(x * 5e29, x),
        "a number": lambda x: np.power(x * 5e29, 2.0),
        "outer": lambda x: np.power.outer(np.full(3, 1e30), x),
    }
    for shape in ((), (1,), (1, 1), (2,)):
        x = np.full(shape, 2.0)
        for name, f in functions.items():
            want = np.asarray(f(x))
            for disabled in ([], ["fuse"]):
                got = pyop.trace(f, pyop.Spec.of(x)).compile(disable=disabled)(x)
                assert got.tobytes() == want.tobytes(), (name, shape, disabled)
