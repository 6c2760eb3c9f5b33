"""Ops, plans and compiled functions in JAX, and functions of JAX as ops."""

import pickle
import threading

import numpy as np
import pytest

import pyop

jax = pytest.importorskip("jax", reason="JAX is not installed", exc_type=ImportError)

import jax.numpy as jnp  # noqa: E402

from pyop.interop.jax import JaxFunction, JaxOp, exception_of, jax_op, wrap  # noqa: E402

from .ten_ops import CASES  # noqa: E402


@pytest.fixture(autouse=True)
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5 if np.asarray(a).dtype == np.float32 else 1e-12)


# --- the ten ops


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_values_are_those_of_the_op(case):
    f, arguments = wrap(case.op), case.made()
    given = [jnp.asarray(a) for a in arguments]
    for found in (f(*given, **case.statics), jax.jit(lambda *a: f(*a, **case.statics))(*given)):
        if case.name == "writes":
            same(given[0], arguments[0])
        if case.exact:
            want = case.op(*[a.copy() for a in arguments], **case.statics)
            jax.tree_util.tree_map(same, found, want)
        else:
            assert ((np.asarray(found) >= arguments[0]) & (np.asarray(found) <= arguments[0] + 1)).all()


@pytest.mark.parametrize("case", [c for c in CASES if c.gradient], ids=lambda c: c.name)
@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradients_are_those_of_the_op(case, way):
    f, arguments = wrap(case.op), case.made()
    given = [jnp.asarray(a) for a in arguments]
    out, pull = jax.vjp(way(lambda *a: f(*a, **case.statics)), *given)
    random = np.random.default_rng(1)
    cts = jax.tree_util.tree_map(lambda y: random.normal(size=y.shape).astype(y.dtype), out)
    want = case.gradient(cts, *arguments)
    for found, wanted, x in zip(pull(jax.tree_util.tree_map(jnp.asarray, cts)), want, arguments, strict=True):
        if wanted is None:
            assert found.dtype == jax.dtypes.float0
        else:
            assert found.dtype == x.dtype
            close(found, wanted)


@pytest.mark.parametrize("case", [c for c in CASES if c.exact], ids=lambda c: c.name)
@pytest.mark.parametrize("in_axes", [0, (1, None)], ids=["all", "one"])
def test_batches_are_stacked_calls(case, in_axes):
    f = wrap(case.op)
    made = [case.made(seed=k) for k in range(3)]
    if in_axes == 0:
        given, axes = [jnp.stack(x) for x in zip(*made, strict=True)], 0
    else:
        axes = (1, *[None] * (len(made[0]) - 1))
        given = [jnp.stack([m[0] for m in made], 1), *map(jnp.asarray, made[0][1:])]
        made = [(m[0], *made[0][1:]) for m in made]
    found = jax.jit(jax.vmap(lambda *a: f(*a, **case.statics), in_axes=axes))(*given)
    for k, arguments in enumerate(made):
        want = f(*map(jnp.asarray, arguments), **case.statics)
        jax.tree_util.tree_map(lambda y, w, k=k: same(y[k], w), found, want)


@pytest.mark.parametrize("case", [c for c in CASES if c.gradient and c.exact], ids=lambda c: c.name)
def test_gradients_in_batches(case):
    f = wrap(case.op)

    def total(*a):
        return sum(y.sum() for y in jax.tree_util.tree_leaves(f(*a, **case.statics)))

    made = [case.made(seed=k) for k in range(3)]
    found = jax.vmap(jax.grad(total))(*[jnp.stack(x) for x in zip(*made, strict=True)])
    for k, arguments in enumerate(made):
        same(found[k], jax.grad(total)(*map(jnp.asarray, arguments)))


def test_a_gufunc_is_called_once_for_a_batch():
    calls = []

    @pyop.op("(n),(n)->()", dtype="float64")
    def dot(x, y):
        calls.append(x.shape)
        return (x * y).sum(-1)

    found = jax.vmap(wrap(dot), in_axes=(0, None))(jnp.ones((5, 3)), jnp.arange(3.0))
    same(found, np.full(5, 3.0))
    # A batch of none.
    assert jax.vmap(wrap(dot))(jnp.ones((0, 3)), jnp.ones((0, 3))).shape == (0,)


def test_errors_have_the_exception_of_the_function():
    mistake = KeyError("mine")

    @pyop.op("float64[n] -> float64[n]")
    def bad(x):
        raise mistake

    f = wrap(bad)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"KeyError: 'mine'[^$]*op 'bad'") as error:
        f(jnp.ones(3))
    assert error.value.__cause__ is mistake
    assert exception_of(error.value) is mistake
    assert any(entry.name == "bad" for entry in pytest.ExceptionInfo.from_exception(mistake).traceback)
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        jax.jit(f)(jnp.ones(3)).block_until_ready()
    assert exception_of(error.value) is mistake
    assert exception_of(ValueError("another")) is None


def test_errors_of_later_calls():
    """JAX has a shorter way for these, which raises ValueError."""
    mistake = KeyError("later")

    @pyop.op("float64[n] -> float64[n]")
    def picky(x):
        if x[0] < 0:
            raise mistake
        return x

    eager, jitted = wrap(picky), jax.jit(wrap(picky))
    for _ in range(3):
        same(eager(jnp.ones(2)), np.ones(2))
        with pytest.raises(jax.errors.JaxRuntimeError, match="later") as error:
            eager(-jnp.ones(2)).block_until_ready()
        assert error.value.__cause__ is mistake
        same(jitted(jnp.ones(2)), np.ones(2))
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="later") as error:
            jitted(-jnp.ones(2)).block_until_ready()
        assert exception_of(error.value) is mistake


def test_arguments_that_are_not_declared():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def add(x, y):
        return x + y

    f = wrap(add)
    with pytest.raises(Exception, match=r"op 'add'|float32"):
        f(jnp.ones(3, jnp.float32), jnp.ones(3))
    with pytest.raises(Exception, match="n"):
        f(jnp.ones(3), jnp.ones(4))
    with pytest.raises(TypeError, match="takes"):
        f(jnp.ones(3))
    with pytest.raises(TypeError, match="takes x, y; got"):
        f(jnp.ones(3), jnp.ones(3), z=2)
    with pytest.raises(TypeError, match="JAX asks before"):
        wrap(pyop.op(np.nonzero, "float64[n] -> int64[_]"))(jnp.ones(3))


def test_a_function_that_breaks_its_word():
    state = {"n": 3}
    op = pyop.op(lambda x: np.ones(state["n"]), "T[n] -> float64[3]", name="three")
    same(wrap(op)(jnp.ones(2)), np.ones(3))
    state["n"] = 4
    with pytest.raises(jax.errors.JaxRuntimeError, match="three"):
        wrap(op)(jnp.ones(2))


def test_tracers_are_for_wrapped_ops():
    op = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="plain")
    with pytest.raises(pyop.InputError, match=r"'plain'.*Tracer"):
        jax.jit(lambda x: op(x))(jnp.ones(3))


def test_types_of_64_bits_are_not_cut_in_silence():
    jax.config.update("jax_enable_x64", False)
    f = wrap(pyop.compile(lambda x: x * 2))
    same(f(jnp.ones(3, jnp.float32)), np.full(3, 2, np.float32))
    with pytest.raises(TypeError, match="float64, which JAX would narrow to 32 bits"):
        f(np.ones(3))
    with pytest.raises(TypeError, match="result 0 is float64"):
        wrap(pyop.op(lambda x: x.astype(float), "float32[n] -> float64[n]"))(jnp.ones(3, jnp.float32))
    same(wrap(pyop.op(lambda x: -x, "T[n] -> T[n]"))(jnp.ones(3, jnp.float32)), -np.ones(3, np.float32))
    with pytest.raises(TypeError, match="argument '0' is float64"):
        jax_op(lambda x: x, "float64[n] -> float64[n]")(np.ones(3))
    take = CASES[-1]
    given = (jnp.ones(3, jnp.float32), jnp.array([1]))
    with pytest.raises(Exception, match="int64"):
        wrap(take.op)(*given)


def test_stateful_ops_run_once_a_call_in_order():
    seen = []

    @pyop.op("float64[] -> float64[]", stateful=True)
    def note(x):
        seen.append(float(x))
        return x

    f = wrap(note)

    @jax.jit
    def program(x):
        f(x)
        f(x)  # not merged
        y = f(x + 1)
        return jax.lax.fori_loop(0, 3, lambda k, y: f(y + 1), y)

    program(jnp.float64(0)).block_until_ready()
    jax.effects_barrier()
    assert seen == [0, 0, 1, 2, 3, 4]


def test_bfloat16():
    op = pyop.op(lambda x: x + x, "T[n] -> T[n]")
    x = jnp.arange(4, dtype=jnp.bfloat16)
    found = jax.jit(wrap(op))(x)
    same(found, x + x)


def test_forward_mode_by_choice():
    op = pyop.op(np.sin, "float64[n] -> float64[n]")
    x = jnp.arange(3.0)
    _, t = jax.jvp(wrap(op, derivatives="jvp"), (x,), (jnp.ones(3),))
    close(t, np.cos(np.arange(3.0)))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(wrap(op), (x,), (jnp.ones(3),))
    with pytest.raises(ValueError, match="neither"):
        wrap(op, derivatives="both")
    with pytest.raises(TypeError, match="expected an op, a plan"):
        wrap(np.sin)


def test_the_derivative_of_a_gradient():
    op = pyop.op(lambda x: np.exp(x), "float64[n] -> float64[n]", name="own_exp")
    plain = wrap(op)
    with pytest.raises(pyop.NoRule, match="own_exp"):
        jax.grad(lambda x: plain(x).sum())(jnp.ones(3))
    op.vjp(lambda ct, x: ct * np.exp(x))
    for f in (wrap(op), wrap(pyop.compile(lambda x: np.exp(x)))):
        g = jax.grad(lambda x, f=f: f(x).sum())
        close(jax.jit(jax.grad(lambda x, g=g: g(x).sum()))(jnp.arange(3.0)), np.exp(np.arange(3.0)))


def test_complex_gradients_are_jaxs():
    x = jnp.array([1 + 2j, 3 - 1j])

    def total(f):
        return jax.grad(lambda x: jnp.abs(f(x)).sum())(x)

    want = total(lambda x: x * x * 1j)
    close(total(wrap(pyop.compile(lambda x: x * x * 1j))), want)
    op = pyop.op(lambda x: x * x * 1j, "complex128[n] -> complex128[n]")
    op.vjp(lambda ct, x: ct * np.conj(2j * x))
    close(total(wrap(op)), want)


@pytest.mark.parametrize("stateful", [False, True])
def test_subnormal_numbers_are_no_zeros(stateful):
    """XLA's threads flush them."""
    op = pyop.op(lambda x: x * 2.0, "float64[n] -> float64[n]", stateful=stateful)
    x = np.full(5, 5e-324)
    same(jax.jit(wrap(op))(jnp.asarray(x)), x * 2.0)


# --- native plans


def test_xla_calls_plans_on_its_own_memory():
    wrapped = wrap(pyop.compile(lambda x, y: (np.sin(x) @ y, x[::-1] - y)))
    for n in (2, 3000):
        x, y = np.random.default_rng(n).normal(size=(2, n))
        want = (np.sin(x) @ y, x[::-1] - y)
        for f in (wrapped, jax.jit(wrapped)):
            jax.tree_util.tree_map(same, f(jnp.asarray(x), jnp.asarray(y)), want)
    assert "pyop_plan" in jax.jit(wrapped).lower(jnp.ones(2), jnp.ones(2)).as_text()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (4, 5), (70, 80)])
@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_every_dtype_has_numpys_bits(dtype, shape):
    def f(x):
        return np.where(x, x, x) if dtype == "bool" else x * x + x, x == x

    x = (np.random.default_rng(0).normal(size=shape) * 9).astype(np.int8).astype(dtype)
    found = jax.jit(wrap(pyop.compile(f)))(jnp.asarray(x))
    jax.tree_util.tree_map(same, found, tuple(map(np.asarray, f(x))))


def test_numbers_at_the_edges():
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308, 1.0])
    f = wrap(pyop.compile(lambda x: np.where(x > 1, -x, np.sqrt(np.abs(x)) * -1.0)))
    same(jax.jit(f)(jnp.asarray(edges)), np.where(edges > 1, -edges, np.sqrt(np.abs(edges)) * -1.0))


def test_trees_and_statics():
    f = wrap(
        pyop.compile(lambda d, k, *, flip=False: {"y": [d["x"] * k, (d["z"],)], "n": d["x"][::-1] if flip else d["x"]})
    )
    x, z = np.arange(3.0), np.ones((2, 2), np.int32)
    found = jax.jit(lambda d: f(d, 3, flip=True))({"x": jnp.asarray(x), "z": jnp.asarray(z)})
    jax.tree_util.tree_map(same, found, {"y": [x * 3, (z,)], "n": x[::-1]})


def test_a_plan_has_its_own_types():
    plan = pyop.trace(lambda x, y: x @ y, "float64[3]", "float64[3]").compile()
    f = wrap(plan)
    same(jax.jit(f)(jnp.arange(3.0), jnp.ones(3)), np.float64(3))
    with pytest.raises(TypeError, match=r"takes x: float64\[3\], y: float64\[3\]"):
        f(jnp.ones(4), jnp.ones(4))


def test_a_plan_whose_sizes_have_names():
    f = wrap(pyop.trace(lambda x, y: (np.sin(x) * y, np.sum(x) + y[0]), "float64[n]", "float64[n]").compile())
    for n in (3, 5, 3):
        x, y = np.arange(1.0, n + 1), np.ones(n)
        found = jax.jit(f)(jnp.asarray(x), jnp.asarray(y))
        same(found[0], np.sin(x) * y)
        same(found[1], np.sum(x) + y[0])
    with pytest.raises(ValueError, match=r"input 'y' of .*declared float64\[n\]"):
        f(jnp.ones(3), jnp.ones(4))
    with pytest.raises(ValueError, match="input 'x'"):
        f(jnp.ones((3, 3)), jnp.ones(3))
    doubled = wrap(pyop.trace(lambda x: np.concatenate([x, x]), "float64[n]").compile())
    same(doubled(jnp.arange(3.0)), np.tile(np.arange(3.0), 2))
    unknown = wrap(pyop.trace(lambda x: x[x > 1], "float64[n]").compile())
    with pytest.raises(TypeError, match="shape"):
        unknown(jnp.arange(3.0))


def test_errors_of_native_plans():
    f = wrap(pyop.compile(lambda m: np.linalg.inv(m)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="LinAlgError: Singular matrix") as error:
        f(jnp.zeros((2, 2)))
    assert isinstance(error.value.__cause__, np.linalg.LinAlgError)
    same(f(jnp.eye(2)), np.eye(2))


def test_warnings_are_errors_where_they_are_asked_to_be():
    # XLA computes on its own thread or on this one: np.errstate of this one may not be known there.
    f = wrap(pyop.compile(lambda x: x / 0.0))
    with pytest.raises(jax.errors.JaxRuntimeError, match="divide by zero"):
        f(jnp.ones(3)).block_until_ready()  # the tests make errors of warnings


def test_who_writes_is_refused():
    def double(x):
        x *= 2
        return x

    with pytest.raises(TypeError, match="writes into"):
        wrap(pyop.compile(double))(jnp.ones(3))


def test_a_compiled_function_that_calls_python():
    op = pyop.op(lambda x: x + 1, "float64[n] -> float64[n]", name="step")
    f = wrap(pyop.compile(lambda x: op(x) * 2))
    same(jax.jit(f)(jnp.ones(3)), np.full(3, 4.0))
    same(jax.vmap(f)(jnp.ones((2, 3))), np.full((2, 3), 4.0))


def test_integers_have_no_gradient():
    f = wrap(pyop.compile(lambda x, i: (x[i] * x[i], i + 1)))
    found = jax.grad(lambda x, i: f(x, i)[0].sum())(jnp.arange(3.0), jnp.array([2, 2]))
    same(found, np.array([0.0, 0, 8]))


def test_differential_of_made_programs():
    """Seeded programs: XLA's call of the plan against NumPy, by bits."""
    steps = [
        lambda x, y: x + y,
        lambda x, y: np.maximum(x, y) * 0.5,
        lambda x, y: np.tanh(x) - y[::-1],
        lambda x, y: np.cumsum(x) + y,
        lambda x, y: np.where(x > y, x, -y),
        lambda x, y: np.sort(x) + y.sum(),
        lambda x, y: x.copy(),
    ]
    random = np.random.default_rng(16)
    for _ in range(25):
        chosen = [
            (steps[random.integers(len(steps))], *random.integers(0, 1 << 30, 2)) for _ in range(random.integers(1, 6))
        ]

        def program(x, y, chosen=chosen):
            values = [x, y]
            for step, i, j in chosen:
                values.append(step(values[i % len(values)], values[j % len(values)]))
            return tuple(values[2:])

        x, y = random.normal(size=(2, random.choice([1, 7, 64, 2000])))
        found = jax.jit(wrap(pyop.compile(program)))(jnp.asarray(x), jnp.asarray(y))
        for a, b in zip(found, program(x, y), strict=True):
            same(a, b)


def test_pickles():
    op = pickle.loads(pickle.dumps(wrap(CASES[0].op)))
    assert isinstance(op, JaxOp)
    same(op(jnp.ones((2, 2))), CASES[0].op(np.ones((2, 2))))
    assert isinstance(wrap(pyop.compile(lambda x: x)), JaxFunction)


# --- functions of JAX as ops


def test_a_function_of_jax_is_an_op():
    @jax.jit
    def f(x, y):
        return jnp.sin(x) * y, (x * y).sum()

    op = jax_op(f, "float64[n], float64[n] -> float64[n], float64[]")
    x, y = np.random.default_rng(3).normal(size=(2, 5))
    jax.tree_util.tree_map(same, op(x, y), tuple(map(np.asarray, f(jnp.asarray(x), jnp.asarray(y)))))
    plan = pyop.trace(lambda x, y: op(x, y)[0] * 2, "float64[5]", "float64[5]").compile()
    same(plan(x, y), op(x, y)[0] * 2)
    found = pyop.grad(lambda x, y: op(x, y)[0].sum() + op(x, y)[1])(x, y)
    close(found, np.cos(x) * y + y)


def test_what_jax_hands_back_is_no_memory_of_the_argument():
    op = jax_op(lambda x: x, "float64[n] -> float64[n]")
    x = np.zeros(1 << 12)
    y = op(x)
    x[:] = 1
    assert (y == 0).all()
    x = np.arange(6.0)[::2]
    same(op(x), x)
    same(op(np.zeros(0)), np.zeros(0))


def test_there_and_back():
    op = jax_op(lambda x: jnp.cos(x), "float64[n] -> float64[n]")
    close(jax.jit(jax.grad(lambda x: wrap(op)(x).sum()))(jnp.arange(3.0)), -np.sin(np.arange(3.0)))


def test_calls_from_many_threads_make_one_function():
    f = wrap(pyop.compile(lambda x: x + 1))
    found = []
    threads = [threading.Thread(target=lambda: found.append(f(jnp.ones(3)))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [float(y.sum()) for y in found] == [6.0] * 4
