"""The backward pass: order, what it runs, what it leaves behind, threads, depth."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import Exp, Ident, Mul, copying, leaf, make, numbers


def logging(name, ran):
    return copying(lambda ctx, g: (ran.append(name), g)[1], name)


def two(backward):
    return make(lambda ctx, a, b: a + b, backward)


Add = two(lambda ctx, g: (g, g))


def test_grad_runs_only_what_leads_to_the_inputs():
    ran = []
    x, w = leaf(1.0), leaf(1.0)
    h = logging("h", ran).apply(x)
    y = Add.apply(logging("p", ran).apply(h), logging("q", ran).apply(w))
    (g,) = autograd.grad(y, [h], retain_graph=True)
    assert ran == ["p"]
    assert numbers(g) == [1]
    assert x.grad is None
    ran.clear()
    autograd.grad(y, [h, x, w], retain_graph=True)
    assert ran == ["q", "p", "h"]
    ran.clear()
    y.backward(inputs=h)
    assert ran == ["p"]
    assert numbers(h.grad) == [1]
    assert x.grad is None


def test_roots_may_be_many_equal_and_within_each_other():
    x = leaf(1.0)
    a = Ident.apply(x)
    b = Mul.apply(a, a)
    seed = np.ones(1)
    autograd.backward([b, a, b], [seed, seed, seed])
    assert numbers(x.grad) == [5]
    assert seed.tolist() == [1]
    with pytest.raises(ValueError, match="3 outputs need as many"):
        autograd.backward([b, a, b], [seed])
    (g,) = autograd.grad([a, a], [a], [seed, seed])
    assert numbers(g) == [2]


def test_what_the_front_refuses():
    x = leaf(1.0, 2.0)
    y = Ident.apply(x)
    constant = pyop.Tensor(np.ones(2))
    for call, error, words in [
        (lambda: y.backward(), RuntimeError, "scalar"),
        (lambda: y.backward(np.ones(3)), RuntimeError, r"\(3,\).*\(2,\)"),
        (lambda: constant.backward(np.ones(2)), RuntimeError, "output 0 does not require a gradient"),
        (lambda: autograd.grad(y, [constant], np.ones(2)), RuntimeError, "input 0 does not require"),
        (lambda: autograd.grad(y, [], np.ones(2)), ValueError, "inputs is empty"),
        (lambda: autograd.grad(y, [3], np.ones(2)), TypeError, r"inputs must be Tensors, but inputs\[0\] is int"),
        (lambda: autograd.grad(y, 3, np.ones(2)), TypeError, "inputs must be a Tensor"),
        (lambda: y.backward(np.ones(2), nonsense=1), TypeError, "nonsense"),
        (lambda: autograd.grad(y, [x, leaf(1.0)], np.ones(2)), RuntimeError, "input 1 is unused"),
    ]:
        with pytest.raises(error, match=words):
            call()
    z = leaf(1j, dtype=complex)
    with pytest.raises(RuntimeError, match="scalar"):
        Ident.apply(z).backward()


def test_unused_inputs():
    x, w = leaf(1.0), leaf(1.0, 2.0)
    seed = np.ones(1)
    assert autograd.grad(Ident.apply(x), [w], seed, allow_unused=True) == (None,)
    assert numbers(autograd.grad(Ident.apply(x), [w], seed, materialize_grads=True)[0]) == [0, 0]
    with pytest.raises(ValueError, match="allow_unused"):
        autograd.grad(Ident.apply(x), [w], seed, materialize_grads=True, allow_unused=False)


def test_results_are_nobody_elses_memory():
    seed = np.ones(2)
    x = leaf(1.0, 2.0)
    (g,) = autograd.grad(x, [x], seed)
    g.numpy()[:] = 7
    Ident.apply(x).backward(seed)
    x.grad.numpy()[:] = 8
    assert seed.tolist() == [1, 1]


def test_gradients_are_added_in_place_and_a_fresh_one_is_taken_over():
    made = []

    def backward(ctx, g):
        fresh = g * 2
        made.append(fresh.__array_interface__["data"][0])
        return fresh

    x = leaf(1.0, 2.0)
    copying(backward).apply(x).backward(np.ones(2))
    grad = x.grad
    assert grad.numpy().__array_interface__["data"][0] == made[0]
    copying(backward).apply(x).backward(np.ones(2))
    assert x.grad is grad
    assert numbers(grad) == [4, 4]


def test_recorded_backward_replaces_the_gradient():
    x = leaf(2.0)
    Mul.apply(x, x).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    Mul.apply(x, x).backward(create_graph=True)
    assert x.grad is not first
    assert numbers(first) == [4]
    assert numbers(x.grad) == [8]
    (h,) = autograd.grad(x.grad, [x])
    assert numbers(h) == [4]
    x.grad = None


def test_mode_during_backward_is_that_of_the_pass():
    seen = []
    op = copying(lambda ctx, g: (seen.append((autograd.is_grad_enabled(), type(g))), g)[1])
    x = leaf(1.0)
    with pyop.no_grad():
        with pyop.enable_grad():
            y = op.apply(x)
        y.backward(create_graph=True)
    op.apply(x).backward()
    assert seen == [(True, pyop.Tensor), (False, np.ndarray)]
    assert autograd.is_grad_enabled()


def test_the_mode_is_the_threads_and_survives_exceptions():
    seen = []
    with pyop.no_grad():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_grad_enabled()))
        thread.start()
        thread.join()
    with pytest.raises(KeyError), pyop.no_grad():
        raise KeyError
    assert seen == [True]
    assert autograd.is_grad_enabled()
    mode = pyop.no_grad()
    with mode, mode:
        assert not autograd.is_grad_enabled()
    assert autograd.is_grad_enabled()


def test_a_nested_run_through_the_same_nodes():
    """The inner pass finds every node of the chain taken by the outer one."""
    x = leaf(2.0)
    h = Mul.apply(x, x)
    found = []

    def backward(ctx, g):
        with pyop.enable_grad():
            found.append(numbers(autograd.grad(h, [x], retain_graph=True)[0]))
            found.append(numbers(autograd.grad([h, h], [x], [np.ones(1)] * 2, retain_graph=True)[0]))
        return g

    y = copying(backward).apply(Add.apply(h, h))
    y.backward()
    assert found == [[4], [8]]
    assert numbers(x.grad) == [8]


def test_a_failed_run_gives_its_nodes_back():
    x = leaf(2.0)
    fail = [True]

    def backward(ctx, g):
        if fail[0]:
            raise KeyError("no")
        return g

    stem = copying(backward).apply(x)
    y = Add.apply(Ident.apply(stem), Mul.apply(stem, stem))
    with pytest.raises(KeyError):
        y.backward(retain_graph=True)
    fail[0] = False
    y.backward(retain_graph=True)
    assert numbers(x.grad) == [5]


def test_endless_nesting_ends():
    def backward(ctx, g):
        with pyop.enable_grad():
            op.apply(leaf(1.0)).backward()

    op = copying(backward)
    with pytest.raises(RecursionError):
        op.apply(leaf(1.0)).backward()


def test_threads_pass_through_one_graph():
    """Passes that interleave on the same nodes; each adds its own gradient."""
    x = leaf(1.0)
    gate = threading.Barrier(4)
    stem = x
    for _ in range(20):
        stem = Add.apply(stem, stem)
    waiting = copying(lambda ctx, g: (gate.wait(), g)[1])
    results = []

    def work(seed):
        y = waiting.apply(stem)
        results.append((seed, autograd.grad(y, [x], np.array([float(seed)]), retain_graph=True)[0].numpy()[0]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(k, k * 2.0**20) for k in range(1, 5)]


def test_signals_end_a_long_pass():
    """A graph of C++ steps only must not hold up Ctrl-C: nodes with a trivial backward, many of them."""
    code = """
import signal, numpy as np, pyop
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us to ignore it
class Id(pyop.Function):
    forward = staticmethod(lambda ctx, x: x)
    backward = staticmethod(lambda ctx, g: g)
y = x = pyop.Tensor(np.ones(1), requires_grad=True)
for _ in range(300_000): y = Id.apply(y)
class Kick(pyop.Function):
    forward = staticmethod(lambda ctx, x: x)
    @staticmethod
    def backward(ctx, g):
        signal.raise_signal(signal.SIGINT)
        return g
try:
    Kick.apply(y).backward()
except KeyboardInterrupt:
    print("interrupted", x.grad)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "interrupted None", done.stderr


@pytest.mark.parametrize("kind", ["plain", "saved input", "saved output", "attribute"])
def test_deep_graphs_run_and_die_without_recursion(kind):
    def forward(ctx, x):
        y = x * 1
        if kind == "saved input":
            ctx.save_for_backward(x)
        elif kind == "saved output":
            ctx.save_for_backward(y)
        return y

    op = make(forward, lambda ctx, g: g)
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        before, y = y, op.apply(y)
        if kind == "attribute":
            y.grad_fn.before = before
    y.backward()
    assert numbers(x.grad) == [1]
    before = None
    node = y.grad_fn
    del y
    del node
    gc.collect()


@pytest.mark.campaign
def test_a_million_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = Ident.apply(y)
    y.backward()
    assert numbers(x.grad) == [1]
    del y


def test_wide_graphs():
    x = leaf(1.0)
    parts = [Ident.apply(x) for _ in range(1000)]
    joined = make(lambda ctx, *xs: sum(xs), lambda ctx, g: (g,) * 1000).apply(*parts)
    joined.backward()
    assert numbers(x.grad) == [1000]


def test_anomaly_detection_says_where_it_began():
    def bad(ctx, g):
        raise ValueError("in backward")

    with autograd.detect_anomaly():
        y = copying(bad, "Bad").apply(leaf(1.0))
        with pytest.raises(ValueError, match="in backward") as error:
            y.backward()
        assert "test_anomaly_detection_says_where_it_began" in error.value.__notes__[0]
        z = copying(lambda ctx, g: g * np.nan, "Nan").apply(leaf(1.0))
        with pytest.raises(RuntimeError, match=r"NanBackward.*nan.*0"):
            z.backward()
    with autograd.detect_anomaly(check_nan=False):
        copying(lambda ctx, g: g * np.nan).apply(leaf(1.0)).backward()
    assert "traceback_" in y.grad_fn.metadata


def test_exp_again_and_again():
    x = leaf(0.5)
    g = Exp.apply(x)
    for _ in range(4):
        (g,) = autograd.grad(g, [x], create_graph=True)
    assert np.allclose(g.numpy(), np.exp(0.5))


def test_containers_of_outputs_and_inputs():
    x, y, z = leaf(1.0, 2.0), leaf(3.0), leaf(5.0)
    inputs = {"x": x, "rest": [y, (z,)]}
    outputs = {"a": (x * y).sum(), "b": x * z}
    seeds = {"a": 1.0, "b": np.ones(2)}
    found = autograd.grad(outputs, inputs, seeds)
    assert set(found) == {"x", "rest"}
    assert numbers(found["x"]) == [8, 8]
    assert numbers(found["rest"][0]) == [3]
    assert numbers(found["rest"][1][0]) == [3]
    autograd.backward({"a": (x * y).sum(), "b": [(x * z).sum()]}, inputs={"y": y})
    assert numbers(y.grad) == [3]
    assert x.grad is None
    with pytest.raises(TypeError, match=r"inputs\['k'\] is float"):
        autograd.grad(x.sum(), {"k": 1.0})
    with pytest.raises(TypeError, match="a Tensor or a container of Tensors, not float"):
        autograd.grad(x.sum(), 1.0)
    with pytest.raises((TypeError, ValueError)):
        autograd.grad({"a": x.sum()}, [x], {"b": 1.0})


# --- modes


def test_modes_decorate_functions_and_generators():
    @autograd.no_grad
    def plain():
        return autograd.is_grad_enabled()

    @autograd.inference_mode()
    def steps():
        try:
            got = yield autograd.is_grad_enabled()
            yield got, autograd.is_grad_enabled()
        except KeyError:
            yield autograd.is_grad_enabled()
        return autograd.is_grad_enabled()

    assert not plain()
    running = steps()
    assert next(running) is False
    assert autograd.is_grad_enabled()
    assert running.send(5) == (5, False)
    assert running.throw(KeyError()) is False
    with pytest.raises(StopIteration) as end:
        next(running)
    assert end.value.value is False
    closed = steps()
    next(closed)
    closed.close()
    assert not autograd.set_grad_enabled(False)(autograd.is_grad_enabled)()
    assert autograd.is_grad_enabled()
