"""`pyop.interop.torch.wrap`: the ten ops in torch, and what a program of torch may do with one."""

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

from pyop._tree import flatten  # noqa: E402
from pyop.interop.torch import wrap  # noqa: E402

from .ten_ops import CASES, product, scale_rows, softsign, sort_in_place, take_sines  # noqa: E402

# torch's own: of forward mode, and of tracing.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Error detected in:UserWarning"),
]
X = torch.arange(1.0, 4.0, dtype=torch.float64)
DIFFERENTIABLE = [case for case in CASES if case.gradient]
EXACT = [case for case in DIFFERENTIABLE if case.exact]


def named(case):
    return case.name


def tensors(case, n=4, seed=0, grad=False):
    made = [torch.from_numpy(x.copy()) for x in case.made(n, seed)]
    for x in made:
        x.requires_grad_(grad and x.is_floating_point())
    return made


def parts(y):
    return list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, tuple) else [y]


def total(f, case):
    """A number of the results, so that there is something to differentiate."""
    return lambda *xs: sum((y * y).sum() for y in parts(f(*xs, **case.statics)))


def compiled(f, **options):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager", **options)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_values(case):
    arrays = case.made()
    found = parts(wrap(case.op)(*tensors(case), **case.statics))
    for y, want in zip(found, flatten(case.reference(*arrays, **case.statics))[0], strict=True):
        if case.exact:
            np.testing.assert_allclose(y.numpy(), want, rtol=1e-6)
        else:
            assert ((y.numpy() >= want) & (y.numpy() < want + 1)).all()


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=named)
def test_gradients(case):
    arrays, given = case.made(), tensors(case, grad=True)
    found = parts(wrap(case.op)(*given, **case.statics))
    random = np.random.default_rng(1)
    cts = [random.normal(size=y.shape).astype(y.detach().numpy().dtype) for y in found]
    torch.autograd.backward(found, [torch.from_numpy(ct) for ct in cts])
    tree = flatten(case.reference(*arrays, **case.statics))[1]
    for x, want in zip(given, case.gradient(tree.unflatten(cts), *arrays), strict=True):
        assert (x.grad is None) is (want is None)
        if want is not None:
            np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-4 if want.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_opcheck(case):
    checks = ["test_schema", "test_autograd_registration", "test_faketensor"]
    if case.exact:  # this one compares the results of two calls
        checks.append("test_aot_dispatch_dynamic")
    given = tuple(tensors(case, grad=case.gradient is not None))
    found = torch.library.opcheck(wrap(case.op).overload, given, case.statics, test_utils=checks)
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("case", [case for case in EXACT if "float32" not in case.name], ids=named)
def test_gradcheck(case):
    f = wrap(case.op)
    given = tuple(tensors(case, grad=True))

    def flat(*xs):
        return tuple(parts(f(*xs, **case.statics)))

    assert torch.autograd.gradcheck(flat, given)
    if "residuals" not in case.name:
        assert torch.autograd.gradgradcheck(flat, given)


@pytest.mark.parametrize("case", EXACT, ids=named)
def test_compiled(case):
    f = total(wrap(case.op), case)
    g = compiled(f, dynamic=True)
    torch._dynamo.utils.counters.clear()
    for n in (4, 5, 9):
        a, b = tensors(case, n, grad=True), tensors(case, n, grad=True)
        want, found = f(*a), g(*b)
        assert torch.equal(want, found)
        want.backward()
        found.backward()
        assert all(x.grad is None or torch.equal(x.grad, y.grad) for x, y in zip(a, b, strict=True))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1  # not one a size


@pytest.mark.parametrize("case", EXACT, ids=named)
def test_vmap(case):
    f = total(wrap(case.op), case)
    each = [tensors(case, seed=k) for k in range(3)]
    stacked = [torch.stack(xs) for xs in zip(*each, strict=True)]
    assert torch.allclose(torch.vmap(f)(*stacked), torch.stack([f(*xs) for xs in each]))
    last = [x.movedim(0, -1) for x in stacked]
    assert torch.allclose(torch.vmap(f, in_dims=-1)(*last), torch.vmap(f)(*stacked))
    want = torch.stack([torch.func.grad(f)(*xs) for xs in each])
    assert torch.allclose(torch.vmap(torch.func.grad(f))(*stacked), want)
    assert torch.allclose(torch.func.grad(lambda *xs: torch.vmap(f)(*xs).sum())(*stacked), want)
    # one argument is not mapped
    shared = [stacked[0], *each[0][1:]]
    dims = (0, *[None] * (len(shared) - 1))
    want = torch.stack([f(xs[0], *shared[1:]) for xs in each])
    assert torch.allclose(torch.vmap(f, in_dims=dims)(*shared), want)


def test_vmap_of_a_gufunc_is_one_call():
    calls = []

    @pyop.op("(n),(n)->()", dtype="float64")
    def dot(x, y):
        calls.append(x.shape)
        return np.dot(x, y)

    f = wrap(dot)
    x, y = torch.rand(5, 2, 3, dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    assert torch.allclose(torch.vmap(f, in_dims=(0, None))(x, y), (x * y).sum(-1))
    z = torch.rand(3, 5, dtype=torch.float64)
    assert torch.allclose(torch.vmap(f, in_dims=(0, 1))(x, z), torch.einsum("bij,jb->bi", x, z))
    assert torch.vmap(f)(torch.ones(0, 3, dtype=torch.float64), torch.ones(0, 3, dtype=torch.float64)).shape == (0,)


def test_an_empty_batch():
    f = wrap(product)
    a, b = torch.ones(0, 2, 3, dtype=torch.float64), torch.ones(3, 4, dtype=torch.float64)
    assert torch.vmap(f, in_dims=(0, None))(a, b).shape == (0, 2, 4)


def test_nothing_is_copied():
    seen = []

    @pyop.op("float64[n], float64[n] -> float64[n]")
    def add(x, y):
        seen.extend([(x.ctypes.data, x.flags.writeable), (y.ctypes.data, y.flags.writeable)])
        result = x + y
        seen.append(result.ctypes.data)
        return result

    add.vjp(lambda ct, x, y: (seen.append(ct.ctypes.data), ct * 1, ct * 2)[1:])
    y = torch.rand(3, dtype=torch.float64)
    for x in (X, X.clone().requires_grad_()):
        seen.clear()
        z = wrap(add)(x, y)
        assert seen == [(x.data_ptr(), False), (y.data_ptr(), False), z.data_ptr()]
    ct = torch.ones(3, dtype=torch.float64)
    z.backward(ct)
    assert seen[-1] == ct.data_ptr()
    # memory lives as long as the tensor does
    z = wrap(add)(X, y)
    want = z.clone()
    gc.collect()
    for _ in range(20):
        wrap(add)(X, X)
    assert torch.equal(z, want)


def test_results_show_no_argument_and_no_other_result():
    same = pyop.op(lambda x: (x, x, x[::-1]), "float64[n] -> float64[n], float64[n], float64[n]", name="same")
    found = wrap(same)(X)
    assert len({y.data_ptr() for y in (X, *found)}) == 4
    assert torch.equal(found[2], X.flip(0))
    found[0].add_(1)
    assert torch.equal(found[1], X)
    twice = pyop.op(lambda x: (lambda y: (y, y))(x * 2), "float64[n] -> float64[n], float64[n]", name="twice")
    a, b = wrap(twice)(X)
    a.zero_()
    assert torch.equal(b, 2 * X)


def test_results_are_laid_out_as_compiled_code_expects():
    f = wrap(pyop.op(lambda x: np.asfortranarray(x * 2), "float64[m,n] -> float64[m,n]", name="fortran"))
    x = torch.rand(3, 4, dtype=torch.float64)
    assert f(x).is_contiguous()
    assert torch.equal(compiled(lambda x: f(x).view(-1))(x), 2 * x.reshape(-1))
    assert torch.equal(f(x.t()), 2 * x.t())


class Own(Exception):
    pass


def test_errors():
    @pyop.op("float64[n] -> float64[n]")
    def fails(x):
        raise Own("no")

    f = wrap(fails)
    for call in (f, compiled(lambda x: f(x))):
        with pytest.raises(Own, match="no") as caught:
            call(X)
        assert "in op 'fails'" in caught.value.__notes__[0]
    wrong = pyop.op(lambda x: x[1:], "float64[n] -> float64[n]", name="wrong")
    with pytest.raises(pyop.OutputError, match="float64\\[2\\], but expects"):
        wrap(wrong)(X)
    with pytest.raises(pyop.InputError, match=r"'x'.*float32"):
        wrap(wrong)(X.float())
    with pytest.raises(ValueError, match="the dtype is float32"):
        wrap(wrong)(X.float().to("meta"))

    @pyop.op("float64[n] -> float64[n]")
    def writes(x):
        x[0] = 1
        return x

    with pytest.raises(ValueError, match="read-only") as caught:
        wrap(writes)(X)
    assert "mutates=" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match="expected an op"):
        wrap(np.sin)
    with pytest.raises(TypeError, match="no static parameter n"):
        wrap(softsign, statics={"n": 1})
    with pytest.raises(TypeError, match="declares no writes"):
        wrap(softsign, in_place=True)
    with pytest.raises(ValueError, match="namespace::name"):
        wrap(softsign, name="softsign")


def test_a_rule_that_fails():
    @pyop.op("float64[n] -> float64[n]")
    def f(x):
        return x * 2

    @f.vjp
    def _(ct, x):
        raise Own("no rule today")

    y = wrap(f)(X.clone().requires_grad_())
    with pytest.raises(Own, match="today"):
        y.sum().backward()


def test_no_gradient_is_lost():
    f = wrap(pyop.op(lambda x: x * 2, "float64[n] -> float64[n]", name="without"))
    x = X.clone().requires_grad_()
    y = f(x)
    assert y.requires_grad
    with pytest.raises(pyop.NoRule, match="'without' has no gradient rule"):
        y.sum().backward()
    with pytest.raises(Exception, match="'without' has no gradient rule"):
        compiled(lambda x: f(x) * 2)(x).sum().backward()
    with pytest.raises(pyop.NoRule, match="forward mode"):
        torch.func.jvp(wrap(softsign), (X,), (torch.ones_like(X),))
    with torch.no_grad():
        assert not f(x).requires_grad
        assert not wrap(softsign)(x).requires_grad
    with torch.inference_mode():
        assert wrap(softsign)(torch.ones(2, dtype=torch.float64)).is_inference()
    # the second derivative by residuals has no rule
    x = torch.rand(4, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(wrap(take_sines)(x, torch.arange(3)).sum(), x, create_graph=True)
    with pytest.raises(pyop.NoRule, match="residuals"):
        g.sum().backward()


def test_forward_mode():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def times(x, y):
        return x * y

    times.vjp(lambda ct, x, y: (ct * y, ct * x))
    times.jvp(lambda t, u, x, y: t * y + x * u)
    f = wrap(times)
    y, t = X + 1, torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
    value, tangent = torch.func.jvp(lambda x: f(x, y), (X,), (t,))
    assert torch.equal(value, X * y)
    assert torch.equal(tangent, t * y)
    assert torch.equal(torch.func.jacfwd(f)(X, y), torch.diag(y))
    hessian = torch.func.hessian(lambda x: f(x, x).sum())
    assert torch.equal(hessian(X), 2 * torch.eye(3, dtype=torch.float64))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(X, t)
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(f(dual, dual)).tangent, 2 * X * t)


def test_jacobians():
    f = wrap(softsign)
    want = torch.diag(1 / (1 + X) ** 2)
    assert torch.allclose(torch.func.jacrev(f)(X), want)
    assert torch.allclose(torch.autograd.functional.jacobian(f, X), want)
    assert torch.allclose(torch.func.jacrev(torch.func.jacrev(lambda x: f(x).sum()))(X), torch.diag(-2 / (1 + X) ** 3))


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", "float16", "float32", "complex64", "complex128", "int8", "uint8", "uint16", "int64", "bool"],
)
def test_dtypes(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="NumPy has bfloat16 by ml_dtypes, which is not installed")
    f = wrap(pyop.op(lambda x: x + x, "T[n] -> T[n]", name="doubled"))
    x = torch.tensor([0, 1, 2]).to(getattr(torch, dtype))
    y = f(x)
    assert y.dtype is x.dtype
    assert y.tolist() == [0, 2, 4] if dtype != "bool" else [False, True, True]
    assert torch.equal(compiled(lambda x: f(x))(x).to(torch.complex128), y.to(torch.complex128))


def test_dtypes_that_torch_has_not():
    f = wrap(pyop.op(lambda x: x.astype(np.longdouble), "float64[n] -> longdouble[n]", name="long"))
    with pytest.raises(TypeError, match="torch has no dtype for"):
        f(X)


def test_lazy_conjugates_and_negatives():
    f = wrap(pyop.op(lambda x: x * 1, "T[n] -> T[n]", name="copied"))
    z = torch.tensor([1 + 2j, -3j])
    assert torch.equal(f(z.conj()), z.conj())
    assert torch.equal(f(z.conj().imag), -z.imag)


def test_other_devices():
    y = wrap(softsign)(X.to("meta"))
    assert y.shape == X.shape
    assert y.is_meta
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        assert wrap(softsign)(torch.empty(3, dtype=torch.float64, device="cuda")).device.type == "cuda"
    from pyop.interop.torch_kernels import refusing

    with pytest.raises(TypeError, match=r"on the CPU, .* of CUDA: pass x.cpu\(\)"):
        refusing("softsign", "CUDA")(X)
    assert torch._C._dispatch_has_kernel_for_dispatch_key(wrap(softsign).name, "CUDA")


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
