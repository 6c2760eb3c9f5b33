"""The tests of `pyop.interop.tensorflow`, which `test_tensorflow.py` runs in a process of their own.

TensorFlow has threads, and takes half a gigabyte: tests that fork, or count, are better off without it.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

import pyop
from pyop._tree import flatten
from pyop.interop import tensorflow_call
from pyop.interop.tensorflow import op_of, wrap

from .ten_ops import CASES, centre, dot, jitter, power, product, softsign, sort_in_place, take_sines

IDS = [case.name for case in CASES]
MODES = ["eager", "graph", "unknown sizes", "unknown ranks"]


def in_mode(function, mode, arrays):
    if mode == "eager":
        return function
    if mode == "graph":
        return tf.function(function)
    rank = (lambda x: None) if mode == "unknown ranks" else (lambda x: [None] * x.ndim)
    return tf.function(function, input_signature=[tf.TensorSpec(rank(x), x.dtype) for x in arrays])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_values_and_gradients(case, mode):
    arrays = case.made()
    tensors = [tf.constant(x) for x in arrays]
    f = in_mode(lambda *xs: wrap(case.op)(*xs, **case.statics), mode, arrays)
    varying = [x for x in tensors if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(varying)
        out = f(*tensors)
    results, tree = flatten(out)
    expected, expected_tree = flatten(case.reference(*arrays, **case.statics))
    assert tree == expected_tree
    for x, y in zip(results, expected, strict=True):
        assert x.dtype.as_numpy_dtype == np.asarray(y).dtype
        assert x.shape == np.shape(y)
        if case.exact:
            np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == tf.float32 else 1e-13)
    seeds = [np.random.default_rng(3).normal(size=x.shape).astype(x.dtype.as_numpy_dtype) for x in results]
    if case.gradient is None:
        with pytest.raises((pyop.NoRule, tf.errors.InvalidArgumentError), match="has no gradient rule"):
            tape.gradient(results, varying, output_gradients=[tf.constant(s) for s in seeds])
        return
    found = tape.gradient(results, varying, output_gradients=[tf.constant(s) for s in seeds])
    wanted = [g for g in case.gradient(tree.unflatten(seeds), *arrays) if g is not None]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5 if x.dtype == tf.float32 else 1e-12)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_batches_in_a_dataset(case):
    arrays = case.made()
    many = [np.stack([x, x[::-1], x]) for x in arrays]
    f = wrap(case.op, **case.statics)
    data = tf.data.Dataset.from_tensor_slices(tuple(many)).map(lambda *xs: f(*xs)).batch(2)
    batches = list(data)
    assert len(batches) == 2
    if not case.exact:
        return
    for k in range(3):
        expected = flatten(case.reference(*(x[k] for x in many), **case.statics))[0]
        for x, y in zip(flatten(batches[k // 2])[0], expected, strict=True):
            np.testing.assert_allclose(x[k % 2], y, rtol=1e-6 if x.dtype == tf.float32 else 1e-13)


def test_shapes_of_a_graph_are_those_declared():
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float64), tf.TensorSpec([3, 5], tf.float64)])
    def f(a, b):
        out = wrap(product)(a, b)
        seen.append(out.shape.as_list())
        return out

    f(np.ones((2, 3)), np.ones((3, 5)))
    assert seen == [[None, 5]]

    @tf.function
    def g(a, b):
        seen.append(wrap(dot)(a, b).shape.as_list())
        return 0

    g(tf.ones((7, 1, 3), tf.float64), tf.ones((4, 3), tf.float64))
    assert seen[-1] == [7, 4]


def test_a_call_at_once_copies_nothing_and_lends_read_only():
    addresses = []

    def f(x):
        assert not x.flags.writeable
        addresses.append(x.ctypes.data)
        return x * 2

    op = wrap(pyop.op(f, "float64[n] -> float64[n]"))
    x = tf.constant(np.arange(1000.0))
    op(x)
    op(x)
    assert addresses[0] == addresses[1] == np.asarray(memoryview(x)).ctypes.data


@pytest.mark.parametrize("size", [3, 10**6])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_tensors_do_not_change_when_the_function_keeps_its_result(mode, size):
    kept = np.zeros(size)
    op = wrap(pyop.op(lambda x: kept, "float64[n] -> float64[n]", stateful=True))
    found = in_mode(op, mode, None)(tf.ones(size, tf.float64))
    kept[0] = 5
    assert found[0] == 0


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_writes_go_into_copies(mode):
    x = tf.constant([3.0, 1.0, 2.0], tf.float64)
    assert in_mode(lambda x: wrap(sort_in_place)(x), mode, None)(x) == 2
    np.testing.assert_array_equal(x, [3, 1, 2])


def test_errors():
    class Mine(Exception):
        pass

    def fails(x):
        raise Mine("no")

    x = tf.ones(2, tf.float64)
    with pytest.raises(Mine, match="no"):
        wrap(pyop.op(fails, "float64[n] -> float64[n]"))(x)
    with pytest.raises(tf.errors.UnknownError, match="Mine: no"):
        tf.function(wrap(pyop.op(fails, "float64[n] -> float64[n]")))(x)
    wrong = wrap(pyop.op(lambda x: x.astype(np.float32), "float64[n] -> float64[n]"))
    with pytest.raises(pyop.OutputError, match="float32"):
        wrong(x)
    with pytest.raises(tf.errors.OpError, match="OutputError"):
        tf.function(wrong)(x)
    longer = wrap(pyop.op(lambda x: np.append(x, 1), "float64[n] -> float64[n]"))
    with pytest.raises(pyop.OutputError):
        longer(x)
    with pytest.raises(pyop.InputError, match="float32"):
        wrap(softsign)(tf.ones(2))
    with pytest.raises((TypeError, ValueError), match="float64"):
        tf.function(wrap(softsign))(tf.ones(2))
    with pytest.raises((TypeError, ValueError)):
        tf.function(wrap(product))(tf.ones((2, 3), tf.float64), tf.ones((4, 2), tf.float64))
    with pytest.raises(TypeError, match="no static parameter"):
        wrap(power, base=2)
    with pytest.raises(TypeError, match="expected an op"):
        wrap(np.sin)
    with pytest.raises(TypeError, match=r"does not say what it returns|without a dtype"):
        tf.function(wrap(pyop.op(lambda x: x)))(x)


def test_purity():
    calls = []

    def count(x):
        calls.append(1)
        return x + 1

    x = tf.zeros(2, tf.float64)
    pure = wrap(pyop.op(count, "float64[n] -> float64[n]"))

    @tf.function
    def unread(x):
        pure(x)
        return x

    unread(x)
    assert not calls
    stateful = wrap(pyop.op(count, "float64[n] -> float64[n]", stateful=True))

    @tf.function
    def reached(x):
        stateful(x)
        return x

    reached(x)
    assert len(calls) == 1
    a, b = tf.function(lambda x: (wrap(jitter)(x), wrap(jitter)(x)))(x)
    assert (a.numpy() != b.numpy()).all()


def test_numbers_arrays_variables_and_containers():
    scaled = wrap(pyop.op(lambda x, a: x * a, "float32[n], float32[] -> float32[n]"))
    np.testing.assert_array_equal(scaled(np.ones(2, np.float32), 1.5), [1.5, 1.5])
    with pytest.raises(pyop.InputError):
        wrap(pyop.op(lambda k: k, "int64[] -> int64[]"))(1.5)
    v = tf.Variable(np.arange(3.0))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(wrap(softsign)(v))
    np.testing.assert_allclose(tape.gradient(y, v), 1 / (1 + np.arange(3.0)) ** 2)
    assert wrap(softsign)([1.0, 2.0]).dtype == tf.float64

    @pyop.op(inputs=[{"a": "float64[n]", "b": "float64[n]"}], outputs="float64[n]")
    def add(parts):
        return parts["a"] + parts["b"]

    np.testing.assert_array_equal(wrap(add)({"a": v, "b": v + 1}), [1, 3, 5])


def test_unread_results_and_second_derivatives():
    x = tf.constant(np.arange(4.0))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(centre)(x)["mean"]
    np.testing.assert_allclose(tape.gradient(y, x), np.full(4, 0.25))

    @pyop.op("float64[n] -> float64[n]")
    def cube(x):
        return x**3

    @pyop.op("float64[n], float64[n] -> float64[n]")
    def slope(ct, x):
        return ct * 3 * x**2

    slope.vjp(lambda ct, c, x: (ct * 3 * x**2, ct * c * 6 * x))
    cube.vjp(lambda ct, x: slope(ct, x))

    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(wrap(cube)(x))
            g = tf.reduce_sum(inner.gradient(y, x))
        return outer.gradient(g, x)

    # With tapes outside of a tf.function, TensorFlow differentiates no custom gradient twice.
    for f in (second, tf.function(second)):
        np.testing.assert_allclose(f(x), 6 * np.arange(4.0))


@pytest.fixture(params=["recorded", "custom_gradient"])
def recording(request, monkeypatch):
    """Calls at once with what TensorFlow records them by, and as they are where it has no such module."""
    if request.param == "custom_gradient":
        monkeypatch.setattr(tensorflow_call, "_record", None)
    else:
        assert tensorflow_call._record is not None
    return request.param


def test_tapes_of_all_kinds_record_a_call_at_once(recording):
    f, x, w = wrap(dot), tf.constant(np.arange(3.0)), tf.Variable(np.arange(3.0) + 1)
    with tf.GradientTape(persistent=True) as tape, tf.GradientTape() as other:
        tape.watch(x)
        y = f(x, w)
        z = f(x, x) + f(tf.sin(x), w)  # one tensor twice, and tensors that others have recorded
        with tape.stop_recording():
            unseen = f(x, w)
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(y, x), np.arange(3.0) + 1)
        np.testing.assert_array_equal(tape.gradient(y, w), np.arange(3.0))
    np.testing.assert_allclose(tape.gradient(z, x), 2 * x + tf.cos(x) * w, rtol=1e-12)
    np.testing.assert_array_equal(other.gradient(y, [x, w], unconnected_gradients="zero")[1], np.arange(3.0))
    assert tape.gradient(unseen, x) is None
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = f(x, w)
    assert tape.gradient(y, [x, w]) == [None, None]


def test_forward_accumulators_take_the_rule_of_the_rule(recording):
    push = pyop.op(np.multiply, "float64[n], float64[n] -> float64[n]", name="push")
    push.vjp(lambda ct, c, k: (ct * k, ct * c))
    tripled = pyop.op(lambda x: 3 * x, "float64[n] -> float64[n]", name="tripled")
    tripled.vjp(lambda ct, x: push(ct, np.full_like(x, 3.0)))
    x = tf.constant(np.arange(3.0))
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = wrap(tripled)(x)
    np.testing.assert_array_equal(accumulator.jvp(y), np.full(3, 3.0))


def test_a_variable_that_the_function_reads_is_no_gradient_lost(recording):
    w = tf.Variable(np.ones(3))
    f = wrap(pyop.op(lambda x: x * w.numpy(), "float64[n] -> float64[n]", name="reads"))
    x = tf.constant(np.arange(3.0))
    with tf.GradientTape(), pytest.raises(TypeError, match=r"[vV]ariable"):
        f(x)
    if recording == "recorded":  # though no argument has a gradient
        places = wrap(pyop.op(lambda k: w.numpy()[k], "int64[n] -> float64[n]", name="reads_at"))
        with tf.GradientTape(), pytest.raises(TypeError, match=r"[vV]ariable"):
            places(tf.constant([0, 2], tf.int64))
    with tf.GradientTape(), pytest.raises(ZeroDivisionError):  # what fails leaves no watcher behind
        wrap(pyop.op(lambda x: x * (1 // 0), "float64[n] -> float64[n]", name="fails"))(x)
    with tf.GradientTape() as tape:
        y = wrap(dot)(x, w)
    np.testing.assert_array_equal(tape.gradient(y, w), x)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_have_the_gradients_of_custom_gradient(seed, monkeypatch):
    ops = [wrap(dot), wrap(softsign)]

    def program(rng, values):
        for _ in range(rng.integers(3, 10)):
            a, b = (values[rng.integers(len(values))] for _ in range(2))
            kind = rng.integers(5)
            if kind == 0:
                values.append(ops[0](a, b) * tf.ones_like(a))
            elif kind == 1:
                values.append(ops[1](a))
            elif kind == 2:
                values.append(tf.stop_gradient(a) * b)
            elif kind == 3:
                values.append(ops[0](tf.sin(a), a) + ops[1](b))
            else:
                values.append(a + b)
        return values[-1]

    def found():
        rng = np.random.default_rng(seed)
        xs = [tf.Variable(rng.normal(size=4)), tf.constant(rng.normal(size=4))]
        with tf.GradientTape(persistent=bool(seed % 2)) as tape:
            tape.watch(xs[1])
            y = program(rng, list(xs))
        return [y, *tape.gradient(y, xs, unconnected_gradients="zero")]

    ours = found()
    monkeypatch.setattr(tensorflow_call, "_record", None)
    for a, b in zip(ours, found(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_residuals_of_many_calls_that_are_pulled_back_later(mode):
    f = in_mode(wrap(take_sines), mode, None)
    x = tf.constant(np.arange(30.0))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = sum(f(x, tf.constant([k], tf.int64)) for k in range(30))
    np.testing.assert_allclose(tape.gradient(total, x), np.cos(np.arange(30.0)), rtol=1e-12)


def test_a_second_thread():
    f = tf.function(wrap(softsign))
    x = tf.constant(np.arange(3.0))
    f(x)
    found = []

    def run():
        for _ in range(50):
            found.append(f(x).numpy())
            found.append(wrap(softsign)(x).numpy())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    assert all((y == found[0]).all() for y in found)


def test_a_random_program_of_ops():
    random = np.random.default_rng(11)
    for _ in range(10):
        steps = random.integers(0, 4, 6)
        k = [int(i) for i in random.integers(0, 5, 3)]

        def program(x, sines, elementwise, add, steps=steps, k=k):
            for step in steps:
                if step == 0:
                    x = elementwise(x)
                elif step == 1:
                    x = add(x, elementwise(x))
                elif step == 2:
                    x = x * 1.5
                else:
                    x = add(x, sines(x, np.array([*k, 1, 2], np.int64)))
            return x

        data = random.normal(size=5)
        expected = program(data, take_sines, softsign, lambda a, b: a + b)
        want = pyop.grad(lambda x: np.sum(program(x, take_sines, softsign, lambda a, b: a + b)))(data)
        for mode in ("eager", "graph"):
            f = in_mode(lambda x: program(x, wrap(take_sines), wrap(softsign), tf.add), mode, None)
            x = tf.constant(data)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            np.testing.assert_allclose(y, expected, rtol=1e-13)
            np.testing.assert_allclose(tape.gradient(y, x), want, rtol=1e-10)


def test_pickling_and_imports():
    again = pickle.loads(pickle.dumps(wrap(power, exponent=3)))
    np.testing.assert_array_equal(again(np.array([2.0])), [8])
    program = (
        "import sys, tensorflow, pyop; before = set(sys.modules); import pyop.interop.tensorflow; "
        "print([m for m in sorted(set(sys.modules) - before) if not m.startswith('pyop.')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# --- the reverse


def test_a_function_as_an_op():
    op = op_of(tf.function(lambda w, x: tf.tanh(tf.linalg.matvec(w, x))), "float64[m,n], float64[n] -> float64[m]")
    random = np.random.default_rng(0)
    w, x = random.normal(size=(3, 4)), random.normal(size=4)
    np.testing.assert_allclose(op(w, x), np.tanh(w @ x), rtol=1e-12)
    slope = 1 - np.tanh(w @ x) ** 2
    for compiled in (False, True):
        g = pyop.grad(lambda w, x: np.sum(op(w, x)), argnums=(0, 1))
        found = (pyop.compile(g) if compiled else g)(w, x)
        np.testing.assert_allclose(found[0], np.outer(slope, x), rtol=1e-12)
        np.testing.assert_allclose(found[1], slope @ w, rtol=1e-12)


def test_the_gradient_is_that_of_the_call():
    rate = tf.Variable(2.0, dtype=tf.float64)
    generator = tf.random.Generator.from_seed(1)
    op = op_of(lambda x: x * rate * generator.uniform([3], dtype=tf.float64), "float64[n] -> float64[n]")
    assert op.stateful
    value, g = pyop.value_and_grad(lambda x: np.sum(op(x)))(np.ones(3))
    np.testing.assert_allclose(value, g.sum(), rtol=1e-12)
    with pytest.raises(TypeError, match="returns tensors"):
        op_of(lambda x: 3, "float64[n] -> float64[]")(np.ones(3))
    with pytest.raises(TypeError, match="expected a function"):
        op_of(3, "float64[n] -> float64[]")


def test_containers_and_several_results():
    op = op_of(
        tf.function(lambda x: {"a": tf.reduce_sum(x * x), "n": tf.size(x, tf.int64)}),
        inputs=["float64[n]"],
        outputs={"a": "float64[]", "n": "int64[]"},
    )
    found = op(np.arange(3.0))
    assert found["a"] == 5
    assert found["n"] == 3
    np.testing.assert_array_equal(pyop.grad(lambda x: op(x)["a"])(np.arange(3.0)), [0, 2, 4])


def test_both_ways():
    inner = op_of(tf.function(tf.exp), "float64[n] -> float64[n]", stateful=False)
    for mode in ("eager", "graph"):
        x = tf.constant(np.arange(3.0))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = in_mode(wrap(inner), mode, None)(x)
        np.testing.assert_allclose(y, np.exp(np.arange(3.0)))
        np.testing.assert_allclose(tape.gradient(y, x), np.exp(np.arange(3.0)))
