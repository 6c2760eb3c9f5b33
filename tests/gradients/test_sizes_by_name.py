"""Gradients where sizes go by name: they call no Python, and have the bits that known sizes give."""

import itertools
import pickle
import random
import re
import warnings

import numpy as np
import pytest

import pyop

V, M, S, Q = "float64[n]", "float64[n,m]", "float64[m]", "float64[n,n]"


def _written(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1] * 2.0
    return np.sum(y * y)


# Programs, their arguments, and how often the plan of value and gradient calls Python, which is not to become more.
CALLS = {
    "slices": (lambda x: np.sum(x[1:] * x[:-1]), [V], 0),
    "Rosenbrock": (lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2), [V], 0),
    "steps": (lambda x: np.sum(x[::2] ** 2) + np.sum(x[::-3] ** 3), [V], 0),
    "backwards": (lambda x: np.sum(x[::-1] * x), [V], 0),
    "axes": (lambda x: np.sum(x[1:, :-1] * x[:-1, 1:]), [M], 0),
    "integers": (lambda x: x[0] * x[-1] + np.sum(x), [V], 0),
    "rows": (lambda x: np.sum(x[0] * x[1]), [M], 0),
    "rows and slices": (lambda x: np.sum(x[1:, 0] * x[:-1, 1]), [M], 0),
    "stencil": (lambda x: np.sum((x[1:-1] - 0.5 * (x[2:] + x[:-2])) ** 2), [V], 0),
    "five points": (
        lambda x: np.sum((4 * x[1:-1, 1:-1] - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:] - x[1:-1, :-2]) ** 2),
        [M],
        0,
    ),
    "float32": (lambda x: np.sum(x[1:] * x[:-1]), ["float32[n]"], 0),
    "complex": (lambda x: np.sum(np.abs(x[1:] * x[:-1])), ["complex128[n]"], 0),
    "written": (_written, [V], 0),
    "mean": (lambda x: np.mean((x[1:] - x[:-1]) ** 2), [V], 0),
    "mean of rows": (lambda x: np.sum(np.mean(x * x, axis=0) ** 2), [M], 0),
    "variance": (lambda x: np.sum(np.var(x, axis=1)) + np.std(x), [M], 0),
    "sum of rows": (lambda x: np.sum(x / np.sum(x, axis=1, keepdims=True)), [M], 0),
    "concatenate": (lambda x, y: np.sum(np.concatenate([x, y]) ** 2), [V, S], 0),
    "concatenate rows": (lambda x, y: np.sum(np.concatenate([x, y], axis=1) ** 2), [M, M], 0),
    "concatenate slices": (lambda x, y: np.sum(np.concatenate([x[1:], y]) ** 2), [V, S], 2),
    "hstack": (lambda x, y: np.sum(np.hstack([x, y]) ** 2), [V, S], 0),
    "append": (lambda x: np.sum(np.append(x, 1.0) ** 2), [V], 0),
    "stack": (lambda x, y: np.sum(np.stack([x, y]) ** 2), [V, V], 0),
    "matmul": (lambda x, y: np.sum((x @ y) ** 2), [M, S], 0),
    "dot": (lambda x: np.dot(x[1:], x[:-1]), [V], 0),
    "outer": (lambda x: np.sum(np.outer(x, x) ** 2), [V], 0),
    "broadcasting": (lambda x, y: np.sum((x * y) ** 2), [M, S], 0),
    "broadcasting slices": (lambda x, y: np.sum((x[:, 1:] - y[1:]) ** 2), [M, S], 0),
    "differences": (lambda x, y: np.sum((x[:, None] - y[None, :]) ** 2), [V, S], 0),
    "reshape": (lambda x: np.sum(np.reshape(x, -1) ** 2) + np.sum(x[1:].ravel() ** 2), [M], 0),
    "roll": (lambda x: np.sum(x * np.roll(x, 1)), [V], 0),
    "where": (lambda x: np.sum(np.where(x[1:] > x[:-1], x[1:], 0.0)), [V], 0),
    "maximum": (lambda x: np.sum(np.maximum(x[1:], x[:-1])), [V], 0),
    "max": (lambda x: np.max(x) + np.sum(x), [V], 0),
    "max of rows": (lambda x: np.sum(np.max(x, axis=1) ** 2), [M], 0),
    "prod": (lambda x: np.prod(x), [V], 0),
    "cumsum": (lambda x: np.sum(np.cumsum(x) ** 2), [V], 0),
    "cumprod": (lambda x: np.sum(np.cumprod(x) ** 2), [V], 1),
    "diff": (lambda x: np.sum(np.diff(x) ** 2) + np.sum(np.diff(x, 2) ** 2), [V], 0),
    "diff of rows": (lambda x: np.sum(np.diff(x, axis=0) ** 2), [M], 0),
    "trapezoid": (lambda x: np.trapezoid(x * x), [V], 0),
    "pad": (lambda x: np.sum(np.pad(x, 1) ** 2), [V], 2),
    "take": (lambda x: np.sum(np.take(x, [0, 2, 0]) ** 2), [V], 1),
    "list": (lambda x: np.sum(x[[0, 2, 0]] ** 2), [V], 1),
    "mask": (lambda x: np.sum(x[x > 0.5] ** 2), [V], 1),
    "repeat": (lambda x: np.sum(np.repeat(x, 2) ** 2), [V], 1),
    "sort": (lambda x: np.sum(np.sort(x) * x), [V], 2),
    "norm": (lambda x: np.sum(np.linalg.norm(x, axis=1)), [M], 0),
    "solve": (lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), [Q, V], 0),
}


def _arguments(specs, n=6, m=5, seed=0):
    rng = np.random.default_rng(seed)
    sizes = {"n": n, "m": m}
    for text in specs:
        spec = pyop.Spec.parse(text)
        shape = tuple(size if isinstance(size, int) else size.evaluate(sizes) for size in spec.shape)
        yield (rng.random(shape) + (1j * rng.random(shape) if spec.dtype.kind == "c" else 0.0)).astype(spec.dtype)


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_python(name):
    f, specs, most = CALLS[name]
    gradient = pyop.value_and_grad(f, tuple(range(len(specs))))
    named = pyop.trace(gradient, *specs).compile()
    calls = int(re.search(r"(\d+) calls? of Python", str(named.explain()))[1])
    assert calls <= most, str(named.explain())
    for n, m in ((6, 5), (7, 3)):
        arrays = list(_arguments(specs, n, m))
        value, found = named(*arrays)
        sizes = [f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in arrays]
        known_value, known = pyop.trace(gradient, *sizes).compile()(*arrays)
        np.testing.assert_array_equal(value, known_value)
        for a, b in zip(found, known, strict=True):
            np.testing.assert_array_equal(a, b)
        plainly = pyop.compile(gradient) if f is _written else gradient  # Tensors are not written
        for a, b in zip(found, plainly(*arrays)[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-12)


def bits(a):
    """What an array holds, to the bit: zeros by their sign, and without what pads a longdouble."""
    a = np.asarray(a)
    parts = [a.real, a.imag] if a.dtype.kind == "c" else [a]
    return [(part.shape, part.tolist(), np.signbit(part).tolist()) for part in parts]


SUMS = [
    (slice(1, None), slice(None, -1)),
    (slice(1, None), slice(1, None), slice(None, -1)),
    (slice(None, None, 2), slice(None, None, -3), 3),
    (Ellipsis, 0, -1),
    (slice(-2, None), slice(None, None, -1)),
    ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))),
    ((slice(1, -1), slice(1, -1)), (slice(2, None), slice(1, -1)), (Ellipsis, slice(2, None))),
    ((0, slice(None, None, -2)), (slice(None), -1), (slice(None, None, 3),)),
    ((1, 2), (Ellipsis, 1)),
    ((Ellipsis, 1, slice(1, None)), (0,), (slice(None, None, -1), slice(None), slice(None, None, 2))),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64", "longdouble", "int64"])
@pytest.mark.parametrize("keys", SUMS, ids=str)
def test_a_sum_of_parts_is_the_sum_of_its_terms(keys, dtype):
    from pyop.gradients.adjoints import put

    ndim = 3 if len(keys) == 3 and keys[0] == SUMS[-1][0] else 2 if any(isinstance(key, tuple) for key in keys) else 1
    rng = np.random.default_rng(0)
    for shape in ((7, 6, 5)[:ndim], ((9000,), (70, 90), (7, 30, 40))[ndim - 1], (2200, 3, 4)[:ndim]):
        like = np.zeros(shape, dtype)
        parts = [(np.asarray(rng.integers(-2, 3, like[key].shape) * -1.0).astype(dtype), key) for key in keys]
        for ct, _ in parts:
            if dtype != "int64":
                ct[ct == 0] *= -1  # zeros of both signs
            if ct.ndim:
                ct[0] *= -1
        (first, key), *rest = parts
        args = [x for part in rest for x in part]
        cts = [ct for ct, _ in parts]

        def summed(like, first, *others):
            return put(first, like, keys[0], *[x for pair in zip(others, keys[1:], strict=True) for x in pair])

        plan = pyop.trace(summed, like, *cts).compile()
        want = sum((put(ct, like, where) for ct, where in rest), put(first, like, key))
        assert bits(put(first, like, key, *args)) == bits(want)
        assert ("copies into zeros, summed" in str(plan.explain())) == (dtype in ("float64", "float32"))
        for _ in range(2):
            assert bits(plan(like, *cts)) == bits(want)
        turned = [ct.T.copy().T if ct.ndim > 1 else ct[::-1].copy()[::-1] if ct.ndim else ct for ct in cts]
        assert bits(plan(like, *turned)) == bits(want)


def test_a_sum_of_parts_warns_and_raises_as_sums_do():
    f = pyop.compile(pyop.grad(lambda x: np.sum(1e308 * x[1:]) + np.sum(1.5e308 * x[:-1])), "float64[n]")
    x = np.ones(5)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="overflow encountered in add"):
            found = f(x)
        assert found.tolist() == [1.5e308, np.inf, np.inf, np.inf, 1e308]
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow encountered in add"):
            f(x)
        with np.errstate(over="ignore"):
            assert np.isinf(f(x)).sum() == 3
    with np.errstate(all="raise"):
        assert f(x[:0]).shape == (0,)
        assert f(x[:1]).tolist() == [0.0]


def test_sizes_taken_to_be_the_same_that_are_not():
    """Nodes of unknown sizes form a group; where one was broadcast, they run one by one."""

    def f(x, y, i):
        a, b = x[:i], y[1:]
        c = a * 2.0 + 1.0
        return c, np.sum(c * c), c * b - a, np.sum(np.sqrt(np.abs(b)) * c)

    named = pyop.trace(f, "float64[n]", "float64[m]", "int64[]").compile()
    rng = np.random.default_rng(0)
    for n, i, m in ((6, 5, 6), (6, 1, 6), (6, 5, 2), (6, 0, 1), (6, 0, 2), (1, 5, 5), (6, 1, 2), (3000, 2500, 2501)):
        x, y = rng.standard_normal(n), rng.standard_normal(m)
        for _ in range(2):
            for got, want in zip(named(x, y, np.int64(i)), f(x, y, i), strict=True):
                assert np.shape(got) == np.shape(want)
                assert bits(np.asarray(got)) == bits(np.asarray(want))
    with pytest.raises(ValueError, match="could not be broadcast"):
        named(x[:5], y[:8], np.int64(5))


def test_sizes_of_four_names_that_are_broadcast():
    def f(x, y, w, z):
        u, v = x * y + 1.0, w * z - 2.0
        return u, u + v, np.sum(u), v * v

    def g(x, y, w, z):
        return (x * y + 1.0) * (w * z - 2.0)

    specs = [f"float64[{name}]" for name in "klmn"]
    rng = np.random.default_rng(0)
    compiled = [(h, pyop.compile(h, *specs)) for h in (f, g)]
    for sizes in itertools.product((0, 1, 5), repeat=4):
        arrays = [rng.standard_normal(size) for size in sizes]
        for plainly, quickly in compiled:
            try:
                want = plainly(*arrays)
            except ValueError:
                with pytest.raises(ValueError, match="could not be broadcast"):
                    quickly(*arrays)
                continue
            for _ in range(3):  # the second call takes a shorter way
                found = quickly(*arrays)
                assert list(map(bits, found)) == list(map(bits, want))


def test_where_of_one_argument_is_as_long_as_its_mask_has_true():
    f = pyop.value_and_grad(lambda x: np.sum(x[np.where(x > 0.0)[0]] ** 2))
    x = np.array([1.0, -2.0, 3.0])
    value, gradient = pyop.trace(f, V).compile()(x)
    assert value == 10.0
    assert gradient.tolist() == [2.0, 0.0, 6.0]


def test_derivatives_of_sums_of_parts():
    def f(x):
        return np.sum(x[1:] ** 3 * x[:-1]) + x[0] * np.sum(x[::-2] ** 2)

    x = np.random.default_rng(0).random(6)
    hessian = pyop.jacobian(pyop.grad(f))
    wanted = np.array([(pyop.grad(f)(x + 1e-6 * e) - pyop.grad(f)(x - 1e-6 * e)) / 2e-6 for e in np.eye(6)])
    np.testing.assert_allclose(pyop.compile(hessian)(x), wanted, rtol=1e-6, atol=1e-8)
    named = pyop.trace(lambda x, v: pyop.grad(lambda y: np.sum(pyop.grad(f)(y) * v))(x), V, V).compile()
    np.testing.assert_allclose(named(x, np.ones(6)), wanted.sum(0), rtol=1e-6)
    _, forward = pyop.trace(lambda x, v: pyop.jvp(pyop.grad(f), (x,), (v,)), V, V).compile()(x, np.ones(6))
    np.testing.assert_allclose(forward, wanted.sum(1), rtol=1e-6)


def test_graphs_with_sums_of_parts_are_pickled():
    graph = pyop.trace(pyop.grad(CALLS["five points"][0]), M)
    x = np.random.default_rng(0).random((6, 5))
    assert bits(pickle.loads(pickle.dumps(graph)).compile()(x)) == bits(graph.compile()(x))


# --- programs by chance

KEYS = ["1:", ":-1", "1:-1", "2:", ":-2", "::2", "1::2", "::-1", ":", "-2:", ":2", "::-2", "3:", ":5", "-1:0:-1"]
PAIRS = [("1:", ":-1"), ("1:", "1:"), ("2:", ":-2"), ("1:-1", "2:"), ("::2", "::2"), ("::-1", ":")]
ONE = """np.sin({0})|{0}*{0}|np.exp(-{0}*{0})|-{0}|{0}**2|np.abs({0})|np.sqrt(1.0+{0}*{0})|3.0*{0}|{0}/(1.0+{0}**2)|
np.maximum({0}, 0.3)|np.where({0}>0.1, {0}, -0.0)|({0}-0.5)|(2.0-{0})|np.copy({0})|np.clip({0}, -0.5, 0.6)"""
TWO = """{0}*{1}|{0}+{1}|{0}-{1}|{0}/(1.5+np.abs({1}))|np.maximum({0},{1})|{0}*2.0-{1}|np.where({0}>{1},{0},{1})"""
WHOLE = """{0}*np.sum({0})|{0}-np.mean({0})|np.cumsum({0},axis=-1)|np.roll({0},1)|np.diff({0},axis=0)|np.flip({0})|
np.concatenate([{0},{1}],axis=0)|{0}*np.max({0})|{0}*{0}[0:1]"""


def program(seed):
    """A function of two arrays of one shape, as text, and their rank."""
    r = random.Random(seed)
    ndim = r.choice([1, 1, 1, 2])
    names, lines = ["x", "y"], []

    def key():
        parts = [r.choice(KEYS) for _ in range(ndim)]
        if ndim == 2 and r.random() < 0.1:
            parts[r.randrange(2)] = r.choice(["0", "-1"])
        return ", ".join(parts)

    for k in range(r.randint(2, 9)):
        a, b, way = r.choice(names), r.choice(names), r.random()
        if way < 0.35:
            text = f"{a}[{key()}]"
        elif way < 0.6:
            text = r.choice(ONE.split("|")).strip().format(a)
        elif way < 0.9:
            if r.random() < 0.5:
                pair = r.choice(PAIRS)
                rest = r.choice(["", ", 1:", ", ::2"]) if ndim == 2 else ""
                a, b = f"{a}[{pair[0]}{rest}]", f"{b}[{pair[1]}{rest}]"
            text = r.choice(TWO.split("|")).format(a, b)
        else:
            text = r.choice(WHOLE.split("|")).strip().format(a, b)
        lines.append(f"    v{k} = {text}")
        names.append(f"v{k}")
    ends = [r.choice(["np.sum({0})", "np.sum({0}**2)", "np.mean({0})"]).format(v) for v in r.sample(names[2:], 2)]
    return "def f(x, y):\n" + "\n".join(lines) + f"\n    return {' + '.join(ends)}\n", ndim


def _outcome(call, arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value, found = call(*arrays)
        except (ValueError, IndexError) as error:
            return error
    return [np.asarray(a) for a in (value, *found)]


def compare(seed):
    """How often the program ran with both, where nothing was refused and nothing is wrong in it."""
    text, ndim = program(seed)
    space = {"np": np}
    exec(text, space)
    gradient = pyop.value_and_grad(space["f"], (0, 1))
    r = random.Random(~seed)
    names = ["n", "m"][:ndim]
    try:
        named = pyop.trace(gradient, *[f"float64[{','.join(names)}]"] * 2).compile()
    except (ValueError, IndexError):
        return 0
    ran = 0
    for large in (False, True):
        shape = [r.choice([0, 1, 2, 3, 9, 33 if ndim == 2 else 3000]) if large else r.choice([6, 7]) for _ in names]
        arrays = np.random.default_rng(seed).standard_normal((2, *shape))
        if arrays.size and r.random() < 0.3:
            arrays.flat[r.randrange(arrays.size)] = r.choice([0.0, -0.0, np.inf, np.nan, 1e308, 5e-324])
        size = f"float64[{','.join(map(str, shape))}]"
        want = _outcome(lambda x, y, size=size: pyop.trace(gradient, size, size).compile()(x, y), arrays)
        if isinstance(want, Exception):
            continue  # where sizes are known, what is not needed may be wrong, too
        found = _outcome(named, arrays)
        assert not isinstance(found, Exception), (text, shape, found)
        for a, b in zip(found, want, strict=True):
            same = a.shape == b.shape and np.where(np.isnan(a), np.isnan(b), a.view(np.int64) == b.view(np.int64)).all()
            assert same, (text, shape, a, b)
        plainly = _outcome(gradient, arrays)
        if not isinstance(plainly, Exception) and all(np.isfinite(a).all() for a in plainly):
            for a, b in zip(found, plainly, strict=True):
                scale = max(1.0, np.abs(b).max(initial=0.0))
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * scale, err_msg=text)
        ran += 1
    return ran


def test_programs_by_chance():
    assert sum(map(compare, range(60))) > 80


@pytest.mark.campaign
def test_many_programs_by_chance():
    assert sum(map(compare, range(1_000_000, 1_006_000))) > 8_000
