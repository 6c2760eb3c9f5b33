"""`pyop.interop.torch.wrap`: the ten ops in torch, and what a program of torch may do with one."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pyop

torch = pytest.importorskip("torch", reason="torch is not installed")

from pyop._tree import flatten  # noqa: E402
from pyop.interop.torch import wrap  # noqa: E402

from .ten_ops import CASES, product, softsign, take_sines  # noqa: E402

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
    for name in ("softsign", "tests::class"):
        with pytest.raises(ValueError, match="namespace::name"):
            wrap(softsign, name=name)


def sines():
    op = pyop.op(lambda x: np.sin(x), "float64[n] -> float64[n]")
    op.vjp(lambda ct, x: ct * np.cos(x))
    return wrap(op), torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)


def test_a_lambda_in_code_that_torch_writes():
    f, x = sines()
    compiled(lambda x: f(x).sum())(x).backward()
    assert torch.allclose(x.grad, x.cos())


class Calls(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_who_has_a_say_in_gradients_still_has():
    f, x = sines()
    y, ones = f(x), torch.ones(5, dtype=torch.float64)
    with Calls() as calls:
        y.backward(ones)
    assert any("_vjp" in name for name in calls.names)
    y = f(x)
    with torch.autograd.profiler.profile() as noted:
        y.backward(ones)
    assert any("_vjp" in event.name for event in noted.function_events)
    for ct in (torch._neg_view(-ones), torch.ones(5, dtype=torch.float64).as_subclass(torch.nn.Parameter)):
        (found,) = torch.autograd.grad(f(x), x, ct)
        assert torch.allclose(found, x.cos())
    (rows,) = torch.autograd.grad(f(x), x, torch.diag(ones), is_grads_batched=True)
    assert torch.allclose(rows, torch.diag(x.cos()))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.to(torch.float32), lambda t: t.to(torch.float64)):
        y = f(x)
    assert torch.allclose(torch.autograd.grad(y, x, ones)[0], x.cos(), atol=1e-6)


def test_rules_that_come_after_the_wrapper():
    op = pyop.op(lambda x: x * 2, "float64[n] -> float64[n]", name="early")
    f = wrap(op)
    op.vjp(lambda ct, x: ct * 2)
    x = X.clone().requires_grad_()
    f(x).sum().backward()
    assert x.grad.tolist() == [2] * 3

    def keeps(x):
        return pyop.saved(x * 2, 2.0)

    op = pyop.op(keeps, "float64[n] -> float64[n]")
    f = wrap(op)
    op.vjp(lambda ct, x, *, saved: ct * saved)
    with pytest.raises(RuntimeError, match="wrap it again"):
        f(x).sum().backward()
    x.grad = None
    wrap(op)(x).sum().backward()
    assert x.grad.tolist() == [2] * 3


def test_ufuncs_and_differences():
    f = wrap(pyop.op(np.sin, "float64[n] -> float64[n]", grad="fd", name="sine"))
    assert torch.autograd.gradcheck(f, (X.clone().requires_grad_(),))
    square = pyop.op(lambda z: z * z, "complex128[n] -> complex128[n]", name="square")
    square.vjp(lambda ct, z: ct * 2 * np.conj(z))
    z = torch.tensor([1 + 2j, 3j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(wrap(square), (z,))


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


def test_what_a_recorded_call_returns_shows_no_argument():
    functions = {
        "its argument": lambda x: x,
        "a view": lambda x: x[::-1],
        "a view of its argument's own": lambda x: x[:],
        "out of order": lambda x: np.flip(x + 1),
        "new": lambda x: x + 1,
    }
    for what, function in functions.items():
        op = pyop.op(function, "float64[n] -> float64[n]")
        op.vjp(lambda ct, x: ct)  # itself returned: the gradient of another tensor, too
        f = wrap(op)
        given = torch.arange(4.0, dtype=torch.float64)
        x = given.clone().requires_grad_()
        y = f(x)
        assert y.requires_grad, what
        np.testing.assert_array_equal(y.detach().numpy(), function(given.numpy()), what)
        assert not np.shares_memory(y.detach().numpy(), x.detach().numpy()), what
        assert y.is_contiguous(), what
        ct = torch.ones(4, dtype=torch.float64)
        (g,) = torch.autograd.grad(y, x, ct)
        assert g.data_ptr() != ct.data_ptr(), what
        np.testing.assert_array_equal(g.numpy(), np.ones(4), what)
    for dtype in ("float32", "float16", "complex64"):
        x = torch.ones(3, dtype=getattr(torch, dtype), requires_grad=True)
        op = pyop.op(lambda x: x * 2, f"{dtype}[n] -> {dtype}[n]")
        op.vjp(lambda ct, x: ct * 2)
        wrap(op)(x).abs().sum().backward()
        assert x.grad.dtype == x.dtype
        np.testing.assert_array_equal(x.grad.numpy(), np.full(3, 2, dtype))
