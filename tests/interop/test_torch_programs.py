"""`pyop.interop.torch.wrap` in programs: writes, static arguments, containers, sizes, lifetime, threads, any layout."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import pyop

torch = pytest.importorskip("torch", reason="torch is not installed")

from pyop.interop.torch import wrap  # noqa: E402

from .ten_ops import scale_rows, softsign, sort_in_place, take_sines  # noqa: E402
from .test_torch import X, compiled  # noqa: E402

# torch's own, of tracing.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


# --- writes


def test_writes_are_the_callers():
    f = wrap(sort_in_place)
    x = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    version = x._version
    assert f(x) == 2
    assert x.tolist() == [1, 2, 3]
    assert x._version == version + 1
    strided = torch.tensor([3.0, 9.0, 1.0, 9.0, 2.0, 9.0], dtype=torch.float64)
    f(strided[::2])
    assert strided.tolist() == [1, 9, 2, 9, 3, 9]
    x = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    assert compiled(lambda x: f(x) + x[0])(x) == 3
    assert x.tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="in_place=False"):
        f(x.clone().requires_grad_() * 1)
    rows = torch.tensor([[3.0, 1.0, 2.0], [9.0, 8.0, 7.0]], dtype=torch.float64)
    assert torch.vmap(f)(rows).tolist() == [2, 8]
    assert rows.tolist() == [[1, 2, 3], [7, 8, 9]]
    # a gradient that needs what was written over is torch's error
    x = X.flip(0).clone()
    w = X.clone().requires_grad_()
    y = (w * x).sum()
    f(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_writes_into_copies():
    f = wrap(sort_in_place, in_place=False)
    x = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    assert f(x) == 2
    assert x.tolist() == [3, 1, 2]
    assert "!" not in str(f)


def test_writes_and_overlaps():
    @pyop.op("float64[n], float64[n] -> float64[n]", mutates="x")
    def shift(x, y):
        x[0] = y[-1]
        x[1:] = y[:-1]
        return x

    f = wrap(shift)
    x = X.clone()
    y = f(x, x)
    assert x.tolist() == y.tolist() == [3, 1, 2]
    assert x.data_ptr() != y.data_ptr()
    both = wrap(pyop.op(lambda x, y: x.sum(), "float64[n], float64[n] -> float64[]", mutates=("x", "y"), name="both"))
    with pytest.raises(ValueError, match="share memory"):
        both(x, x[:])
    with pytest.raises(pyop.InputError, match="float32"):
        f(X.float(), X)


def test_writes_keep_to_their_thread():
    @pyop.op("float64[n], float64[n] -> float64[]", mutates="x")
    def outer(x, y):
        x[:] = y
        if y[0] > 0:
            inner(torch.from_numpy(np.zeros(3)), torch.from_numpy(y - 1))
        return x.sum()

    inner = wrap(outer)
    failed = []

    def run(k):
        for _ in range(50):
            x = torch.zeros(3, dtype=torch.float64)
            y = torch.full((3,), float(k), dtype=torch.float64)
            if inner(x, y) != 3 * k or not torch.equal(x, y):
                failed.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []


# --- static arguments, containers, sizes


def test_static_arguments():
    @pyop.op("float64[n] -> float64[n]")
    def scaled(x, *, by: float = 2.0, mode: str = "plain", extra=None):
        return x * by * (1 if mode == "plain" else -1) + (0 if extra is None else extra[0])

    scaled.vjp(lambda ct, x, *, by=2.0, mode="plain": ct * by * (1 if mode == "plain" else -1))
    with pytest.raises(TypeError, match=r"extra= of op 'scaled' is static.*statics="):
        wrap(scaled)
    f = wrap(scaled, statics={"extra": (1.0,)})
    assert torch.equal(f(X), 2 * X + 1)
    assert torch.equal(f(X, by=3.0, mode="minus"), -3 * X + 1)
    x = X.clone().requires_grad_()
    compiled(lambda x: f(x, by=5.0, mode="minus").sum())(x).backward()
    assert x.grad.tolist() == [-5] * 3
    g = wrap(scaled, statics={"extra": None, "by": 4.0})
    assert torch.equal(g(X), 4 * X)
    assert g is wrap(scaled, statics={"extra": None, "by": 4.0})
    assert g is not f


def test_containers():
    @pyop.op(inputs=[{"a": "float64[n]", "b": ("float64[n]", "float64[n]")}, "float64[]"], outputs=["float64[n]"])
    def mixed(parts, k):
        return [parts["a"] * k + parts["b"][0] * parts["b"][1]]

    @mixed.vjp
    def _(ct, parts, k):
        a, (b, c) = parts["a"], parts["b"]
        return {"a": ct[0] * k, "b": (ct[0] * c, ct[0] * b)}, np.sum(ct[0] * a)

    f = wrap(mixed)
    given = [X.clone().requires_grad_() for _ in range(3)]
    k = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for call in (f, compiled(lambda parts, k: f(parts, k))):
        (y,) = call({"a": given[0], "b": (given[1], given[2])}, k)
        assert torch.equal(y, 2 * X + X * X)
        grads = torch.autograd.grad(y.sum(), [*given, k])
        assert [g.tolist() for g in grads] == [[2] * 3, X.tolist(), X.tolist(), 6]
    with pytest.raises((TypeError, ValueError, KeyError)):
        f({"a": given[0]}, k)


def test_sizes_that_are_known_after_the_call():
    f = wrap(pyop.op(lambda x: (x[x > 1], x[x > 1] * 2), "float64[n] -> float64[m!], float64[m]", name="chosen"))
    a, b = compiled(lambda x: f(x))(X)
    assert a.tolist() == [2, 3]
    assert b.tolist() == [4, 6]


def test_what_is_not_declared():
    f = wrap(pyop.op(lambda x: x * 2, name="open"))
    assert torch.equal(f(X), 2 * X)
    with pytest.raises(Exception, match="does not declare the dtype of result 0"):
        compiled(lambda x: f(x))(X)


def test_specs_by_a_function():
    @pyop.op
    def pairs(x):
        return np.stack([x[:-1], x[1:]], axis=1)

    @pairs.abstract
    def _(x):
        return pyop.Spec(x.dtype, (x.shape[0] - 1, 2))

    f = wrap(pairs)
    g = compiled(lambda x: f(x), dynamic=True)
    for n in (3, 5, 8):
        x = torch.arange(float(n))
        assert torch.equal(g(x), torch.stack([x[:-1], x[1:]], 1))


def test_sizes_that_must_be_equal():
    f = wrap(scale_rows)
    g = compiled(lambda x, w: f(x, w), dynamic=True)
    with pytest.raises(Exception, match=r"two sizes of one name"):
        g(torch.ones(2, 3, dtype=torch.float64), torch.ones(4, dtype=torch.float64))


def test_saved_programs():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.f = wrap(softsign)

        def forward(self, x):
            return self.f(x) + 1

    model = copy.deepcopy(Model())
    assert model.f is wrap(softsign)
    exported = torch.export.export(model, (X,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    assert torch.equal(exported.module()(X[:2]), model(X[:2]))


# --- lifetime


def test_one_wrapper_for_an_op():
    assert wrap(softsign) is wrap(softsign)
    assert pickle.loads(pickle.dumps(wrap(softsign))) is wrap(softsign)
    assert copy.copy(wrap(softsign)) is wrap(softsign)
    with pytest.raises(AttributeError, match="immutable"):
        wrap(softsign).op = None
    a = pyop.op(lambda x: x + 1, "float64[n] -> float64[n]", name="namesake")
    b = pyop.op(lambda x: x + 2, "float64[n] -> float64[n]", name="namesake")
    f, g = wrap(a), wrap(b)
    assert f.name != g.name
    assert torch.equal(f(X) + 1, g(X))
    assert wrap(a, name="tests_of_pyop::namesake").name == "tests_of_pyop::namesake"


def test_the_op_is_gone_with_its_wrapper():
    def run():
        op = pyop.op(lambda x: x * 3, "float64[n] -> float64[n]", name="mortal")
        op.vjp(lambda ct, x: ct * 3)
        f = wrap(op)
        x = X.clone().requires_grad_()
        f(x).sum().backward()
        return weakref.ref(f), f.name

    wrapper, name = run()
    gc.collect()
    assert wrapper() is None
    assert name not in torch._C._dispatch_get_all_op_names()
    assert f"{name}_vjp" not in torch._C._dispatch_get_all_op_names()


def test_a_compiled_function_keeps_the_op():
    def make():
        op = pyop.op(lambda x: x * 3, "float64[n] -> float64[n]", name="kept")
        op.vjp(lambda ct, x: ct * 3)
        f = wrap(op)
        g = compiled(lambda x: f(x) + 0)
        g(X)
        return g

    g = make()
    gc.collect()
    x = X.clone().requires_grad_()
    g(x).sum().backward()
    assert x.grad.tolist() == [3] * 3


def test_a_graph_keeps_the_op():
    x = X.clone().requires_grad_()
    op = pyop.op(lambda x: x * 3, "float64[n] -> float64[n]", name="passing")
    op.vjp(lambda ct, x: ct * 3)
    y = wrap(op)(x)
    del op
    gc.collect()
    y.sum().backward()
    assert x.grad.tolist() == [3] * 3


def test_threads():
    f = wrap(take_sines)
    failed = []

    def run(k):
        index = torch.arange(3)
        for _ in range(50):
            x = torch.full((3,), float(k), dtype=torch.float64, requires_grad=True)
            f(x, index).sum().backward()
            if not np.array_equal(x.grad.numpy(), np.cos(np.full(3, float(k)))):
                failed.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []


def test_modes_see_the_op():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        wrap(softsign)(X)
    assert any("softsign" in name for name in seen)
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: wrap(softsign)(x))(X)
    assert "softsign" in graph.code


# --- by chance


def random_tensor(random, shape):
    """Any layout: steps, reversed axes by flips of views, transposed, offset, expanded."""
    steps = [int(s) for s in random.integers(1, 3, len(shape))]
    base = torch.from_numpy(random.normal(size=[n * s + 1 for n, s in zip(shape, steps, strict=True)]))
    x = base[tuple(slice(1, None, s) for s in steps)][tuple(slice(0, n) for n in shape)]
    if len(shape) == 2 and random.random() < 0.5:
        x = x.t().contiguous().t()
    if len(shape) and random.random() < 0.2:
        x = x[:1].expand(shape)
    specials = torch.tensor([0.0, -0.0, float("inf"), float("nan"), 5e-324], dtype=torch.float64)
    if x.numel() and random.random() < 0.5:
        x = torch.where(torch.rand(shape) < 0.2, specials[int(random.integers(5))], x)
    return x


@pytest.mark.parametrize("seed", range(60))
def test_any_layout_gives_numpys_bits(seed):
    random = np.random.default_rng(seed)
    n, m = (int(k) for k in random.integers(0, 5, 2))
    op = pyop.op(lambda x, y: np.multiply(x, y) - x, "float64[m,n], float64[m,n] -> float64[m,n]", name="any")
    op.vjp(lambda ct, x, y: (ct * y - ct, ct * x))
    x, y = random_tensor(random, (m, n)), random_tensor(random, (m, n))
    f = wrap(op)
    with np.errstate(all="ignore"):
        want = op(x.numpy(), y.numpy())
        found = f(x, y)
        assert found.numpy().tobytes() == np.ascontiguousarray(want).tobytes()
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        ct = random_tensor(random, (m, n))
        f(a, b).backward(ct)
        da, db = pyop.vjp(op, x.numpy(), y.numpy())[1](ct.numpy())
    assert a.grad.numpy().tobytes() == np.ascontiguousarray(da).tobytes()
    assert b.grad.numpy().tobytes() == np.ascontiguousarray(db).tobytes()


def test_floating_point_errors_are_numpys():
    f = wrap(pyop.op(lambda x: 1 / x, "float64[n] -> float64[n]", name="inverse"))
    zero = torch.zeros(1, dtype=torch.float64)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        f(zero)
    with np.errstate(all="ignore"):
        assert f(zero).item() == np.inf
