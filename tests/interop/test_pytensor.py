"""`pyop.interop.pytensor`: the ten ops in PyTensor's graphs, its rewrites, a model of PyMC, and the reverse."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pyop
from pyop._tree import flatten

from .ten_ops import CASES, centre, dot, jitter, power, product, softsign, sort_in_place, take_sines

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed: pip install pyop-core[pytensor]")
pt = pytest.importorskip("pytensor.tensor")
from pyop.interop.own_arrays import own  # noqa: E402
from pyop.interop.pytensor import PyopOp, op_of, wrap  # noqa: E402

# All rewrites, and no compiler of C.
PLAIN = pytensor.compile.mode.Mode(linker="py", optimizer="fast_run")
# Of PyTensor's, of what it has found on this machine.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
IDS = [case.name for case in CASES]


def variables(arrays, sized=False):
    return [pt.TensorType(x.dtype.name, x.shape if sized else (None,) * x.ndim)() for x in arrays]


def compiled(inputs, outputs, mode=PLAIN, **options):
    return pytensor.function(inputs, outputs, mode=mode, **options)


def nodes_of(function):
    return [node for node in function.maker.fgraph.toposort() if isinstance(node.op, PyopOp)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("n", [4, 1, 0])
def test_values_and_shapes(case, sized, n):
    if n == 0 and case.name in ("reduction", "two results", "writes", "residuals, float64", "residuals, float32"):
        pytest.skip("this op is not defined on nothing")
    arrays = case.made(n)
    inputs = variables(arrays, sized)
    results, tree = flatten(wrap(case.op)(*inputs, **case.statics))
    found = compiled(inputs, results)(*arrays)
    expected, expected_tree = flatten(case.reference(*arrays, **case.statics))
    assert tree == expected_tree
    for result, x, y in zip(results, found, expected, strict=True):
        assert x.dtype == result.type.dtype == np.asarray(y).dtype
        assert x.shape == np.shape(y)
        assert not sized or result.type.shape == x.shape
        if case.exact:
            np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == np.float32 else 1e-13)
    sizes = compiled(inputs, [result.shape for result in results], on_unused_input="ignore")
    assert [tuple(shape) for shape in sizes(*arrays)] == [x.shape for x in found]
    assert not nodes_of(sizes), "infer_shape needs no call"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradients(case):
    arrays = case.made()
    inputs = variables(arrays)
    results, tree = flatten(wrap(case.op)(*inputs, **case.statics))
    varying = [x for x in inputs if x.dtype.startswith("float")]
    seeds = [np.random.default_rng(3).normal(size=np.shape(y)) for y in flatten(case.reference(*arrays))[0]]
    seeds = [seed.astype(y.type.dtype) for seed, y in zip(seeds, results, strict=True)]
    cost = sum((y * pt.constant(seed)).sum() for y, seed in zip(results, seeds, strict=True))
    if case.gradient is None:
        with pytest.raises(pytensor.gradient.NullTypeGradError, match="has no rule for gradients"):
            pytensor.grad(cost, varying)
        return
    found = compiled(inputs, pytensor.grad(cost, varying), on_unused_input="ignore")(*arrays)
    expected = [g for g in case.gradient(tree.unflatten(seeds), *arrays) if g is not None]
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5 if x.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_batches(case):
    arrays = case.made()
    if not case.exact or case.gradient is None:
        pytest.skip("random numbers, or writes, of which the order is told by no reference")
    inputs = variables(arrays)
    results, _tree = flatten(wrap(case.op)(*inputs, **case.statics))
    batches = [np.stack([x, x[::-1], x]) for x in arrays]
    given = variables(batches)
    mapped = pytensor.graph.replace.vectorize_graph(results, replace=dict(zip(inputs, given, strict=True)))
    found = compiled(given, mapped)(*batches)
    for k in range(3):
        expected = flatten(case.reference(*(x[k] for x in batches), **case.statics))[0]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-6 if x.dtype == np.float32 else 1e-13)


def test_a_gufunc_loops_by_itself():
    x, y = pt.dvectors("xy")
    out = wrap(dot)(x, y)
    many = pt.dmatrix("many")
    mapped = pytensor.graph.replace.vectorize_graph(out, replace={x: many})
    assert isinstance(mapped.owner.op, PyopOp)
    data = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(compiled([many, y], mapped)(data, np.ones(3)), data.sum(1))
    # Sizes of loops that are one or not by the call.
    a, b = pt.dmatrices("ab")
    shape = compiled([a, b], wrap(dot)(a, b).shape)
    assert shape(np.ones((1, 3)), np.ones((5, 3))) == [5]
    assert shape(np.ones((5, 3)), np.ones((1, 3))) == [5]
    gradients = compiled([a, b], pytensor.grad(wrap(dot)(a, b).sum(), [a, b]))(data, 2 * data)
    for g, expected in zip(gradients, (2 * data, data), strict=True):
        np.testing.assert_array_equal(g, expected)


def test_equal_calls_are_merged_and_stateful_ones_are_not():
    x = pt.dvector("x")
    assert wrap(softsign) == wrap(softsign)
    assert hash(wrap(softsign)) == hash(wrap(softsign))
    assert wrap(power)(x, exponent=3).owner.op != wrap(power)(x).owner.op
    assert wrap(power, exponent=3) != wrap(power, exponent=3.0)
    once = compiled([x], wrap(softsign)(x) + wrap(softsign)(x))
    assert len(nodes_of(once)) == 1
    random = wrap(jitter)
    twice = compiled([x], [random(x), random(x)])
    assert len(nodes_of(twice)) == 2
    a, b = twice(np.zeros(3))
    assert (a != b).all()
    constant = compiled([], random(np.zeros(3)))
    assert (constant() != constant()).all(), "stateful ops are not folded"
    assert not nodes_of(compiled([], wrap(softsign)(np.zeros(3))))


def test_values_and_gradient_call_the_function_once():
    calls = []

    @pyop.op("float64[n] -> float64[]")
    def energy(x):
        calls.append(x.flags.writeable)
        return np.sum(x * x)

    @energy.vjp
    def _(ct, x):
        assert not x.flags.writeable
        return 2 * ct * x

    x = pt.dvector("x")
    value = wrap(energy)(x)
    f = compiled([x], [value, pytensor.grad(value, x)])
    np.testing.assert_array_equal(f(np.arange(3.0))[1], [0, 2, 4])
    assert calls == [False]


def test_a_rule_that_takes_needs_computes_what_is_read():
    asked = []

    @pyop.op("float64[n], float64[n] -> float64[]")
    def weigh(x, w):
        return np.dot(x, w)

    @weigh.vjp
    def _(ct, x, w, *, needs):
        asked.append(tuple(needs))
        return ct * w if needs[0] else None, ct * x if needs[1] else None

    x, w = pt.dvectors("xw")
    f = compiled([x, w], pytensor.grad(wrap(weigh)(x, w), w), on_unused_input="ignore")
    np.testing.assert_array_equal(f(np.arange(3.0), np.ones(3)), np.arange(3.0))
    assert asked == [(False, True)]


def test_second_derivatives_and_tangents():
    @pyop.op("float64[n] -> float64[n]")
    def cube(x):
        return x**3

    @pyop.op("float64[n], float64[n] -> float64[n]")
    def slope(ct, x):
        return ct * 3 * x**2

    @slope.vjp
    def _(ct, c, x):
        return ct * 3 * x**2, ct * c * 6 * x

    cube.vjp(lambda ct, x: slope(ct, x))
    cube.jvp(lambda t, x: 3 * x**2 * t)
    x, v = pt.dvectors("xv")
    data, direction = np.array([1.0, 2.0, -3.0]), np.array([1.0, 0.5, 2.0])
    first = pytensor.grad(wrap(cube)(x).sum(), x)
    np.testing.assert_allclose(compiled([x], pytensor.grad(first.sum(), x))(data), 6 * data)
    y = wrap(cube)(x)
    if hasattr(pytensor.gradient, "pushforward"):
        tangent = pytensor.gradient.pushforward(y, x, v, use_op_pushforward=True)
    else:
        tangent = pytensor.gradient.Rop(y, x, v, use_op_rop_implementation=True)
    f = compiled([x, v], tangent)
    assert any(node.op.path and node.op.path[-1][0] == "jvp" for node in nodes_of(f))
    np.testing.assert_allclose(f(data, direction), 3 * data**2 * direction)


def test_writes_are_copied_unless_nobody_reads_the_argument():
    x = pt.dvector("x")
    data = np.array([3.0, 1.0, 2.0])
    f = compiled([x], [wrap(sort_in_place)(x), x + 0])
    assert f(data)[0] == 2
    np.testing.assert_array_equal(data, [3, 1, 2])
    assert not nodes_of(f)[0].op.in_place, "PyTensor protects the arguments of a function"
    twice = 2 * x
    alone = compiled([x], wrap(sort_in_place)(twice))
    assert [node.op.in_place for node in nodes_of(alone)] == [True]
    assert alone(data) == 4
    read = compiled([x], [wrap(sort_in_place)(twice), twice])
    middle, kept = read(data)
    assert middle == 4
    np.testing.assert_array_equal(kept, [6, 2, 4])
    np.testing.assert_array_equal(data, [3, 1, 2])


@pytest.mark.parametrize("kind", ["itself", "view", "kept", "kept view", "broadcast", "read-only"])
def test_pytensor_writes_into_nothing_that_others_hold(kind):
    kept = np.arange(4.0)
    read_only = np.arange(4.0)
    read_only.flags.writeable = False
    functions = {
        "itself": lambda x: x,
        "view": lambda x: x[::-1],
        "kept": lambda x: kept,
        "kept view": lambda x: kept[:],
        "broadcast": lambda x: np.broadcast_to(x[:1], (4,)),
        "read-only": lambda x: read_only,
    }
    x = pt.dvector("x")
    data = np.arange(4.0)
    expected = functions[kind](data).copy()
    # The sum is written into the op's result: see the mode's rewrites in place.
    f = compiled([x], wrap(pyop.op(functions[kind], "float64[n] -> float64[n]"))(x) + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(data), expected + 1)
    np.testing.assert_array_equal(data, np.arange(4.0))
    np.testing.assert_array_equal(kept, np.arange(4.0))


def test_own_copies_what_is_shared_and_nothing_else():
    fresh = own((np.arange(3.0), np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T))
    assert all(x.flags.writeable for x in fresh)
    made = [np.ones(3), np.ones((2, 3)).T]
    addresses = [x.ctypes.data for x in made]
    parts = tuple(made)
    del made
    assert [x.ctypes.data for x in own(parts)] == addresses
    shared = np.ones(3)
    assert not any(np.shares_memory(x, shared) for x in own((shared, shared[1:], shared[::2])))
    both = np.arange(4.0)
    a, b = own((both[:3], both[1:]))
    del both
    assert not np.shares_memory(a, b)
    misaligned = np.zeros(25, np.uint8)[1:].view(np.float64)
    assert own((misaligned,))[0].flags.aligned


def test_own_by_random_views():
    random = np.random.default_rng(5)
    for _ in range(300):
        base = np.arange(24.0).reshape(4, 6)
        keep = random.random() < 0.5
        view = base
        for _ in range(random.integers(0, 3)):
            view = [view.T, view[1:], view[:, ::-1], view.reshape(-1, view.shape[0]), view[...]][random.integers(0, 5)]
        expected = view.copy()
        held = base if keep else None
        parts = (view,)
        del view, base
        (found,) = own(parts)
        np.testing.assert_array_equal(found, expected)
        assert found.flags.writeable
        if held is not None:
            found[...] = -1
            np.testing.assert_array_equal(held, np.arange(24.0).reshape(4, 6))


def test_errors_are_the_users_own_and_pyops():
    class Mine(Exception):
        pass

    def fails(x):
        raise Mine("no")

    x = pt.dvector("x")
    with pytest.raises(Mine, match="no"):
        compiled([x], wrap(pyop.op(fails, "float64[n] -> float64[n]"))(x))(np.ones(2))
    wrong = pyop.op(lambda x: x.astype(np.float32), "float64[n] -> float64[n]")
    with pytest.raises(pyop.OutputError, match="float32"):
        compiled([x], wrap(wrong)(x))(np.ones(2))
    longer = pyop.op(lambda x: np.append(x, 1), "float64[n] -> float64[n]")
    with pytest.raises(pyop.OutputError):
        compiled([x], wrap(longer)(x))(np.ones(2))
    with pytest.raises((TypeError, ValueError), match="float64"):
        wrap(softsign)(pt.fvector("f"))
    with pytest.raises(ValueError):
        wrap(product)(pt.tensor("a", shape=(2, 3), dtype="float64"), pt.tensor("b", shape=(4, 2), dtype="float64"))
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        wrap(product).make_node(pt.dmatrix())
    with pytest.raises(TypeError, match="no static parameter"):
        wrap(power, base=2)
    with pytest.raises(TypeError, match="number of dimensions"):
        wrap(pyop.op(lambda x: x, "float64 -> float64"))(x)
    with pytest.raises(TypeError, match="expected an op"):
        wrap(np.sin)


def test_numbers_handed_over_as_vectors_are_told_of():
    scaled = wrap(pyop.op(lambda x, a: x * a, "float64[n], float64[] -> float64[n]"))
    with pytest.raises(ValueError) as caught:
        scaled(pt.dvector("x"), pt.tensor("a", shape=(1,), dtype="float64"))
    assert any("pass x[0]" in note for note in caught.value.__notes__)
    assert wrap(pyop.op(lambda x, a: x * a, "float32[n], float32[] -> float32[n]"))(pt.fvector(), 2).type.ndim == 1


def test_gradients_of_integers_and_unread_results():
    x = pt.dvector("x")
    parts = wrap(centre)(x)
    g = compiled([x], pytensor.grad(parts["mean"], x))(np.arange(4.0))
    np.testing.assert_allclose(g, np.full(4, 0.25))
    index = pt.lvector("i")
    with pytest.raises(pytensor.gradient.DisconnectedInputError):
        pytensor.grad(wrap(take_sines)(x, index).sum(), index)


@pytest.mark.parametrize("op", [softsign, take_sines])
def test_pickling(op):
    x, i = pt.dvector("x"), pt.lvector("i")
    inputs = [x] if op is softsign else [x, i]
    out = wrap(op)(*inputs)
    f = compiled(inputs, [out, pytensor.grad(out.sum(), x)])
    arrays = [np.arange(3.0), np.array([0, 2])][: len(inputs)]
    again = pickle.loads(pickle.dumps(f))
    for a, b in zip(f(*arrays), again(*arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    assert pickle.loads(pickle.dumps(wrap(op))) == wrap(op)


def test_the_import_touches_pytensor_alone():
    program = (
        "import sys, pyop.interop.pytensor; "
        "print([m for m in ('torch', 'jax', 'tensorflow', 'pymc', 'dask') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# --- the reverse


def test_a_graph_as_an_op():
    x, w = pt.dvector("x"), pt.dmatrix("w")
    op = op_of([w, x], [pt.tanh(w @ x), x.sum()], mode=PLAIN)
    assert not op.stateful
    random = np.random.default_rng(0)
    a, b = random.normal(size=(3, 4)), random.normal(size=4)
    y, _total = op(a, b)
    np.testing.assert_allclose(y, np.tanh(a @ b), rtol=1e-14)
    kept = y.copy()
    op(a + 1, b)
    np.testing.assert_array_equal(y, kept)  # not PyTensor's own memory
    g = pyop.grad(lambda w, x: np.sum(op(w, x)[0]), argnums=(0, 1))(a, b)
    slope = 1 - np.tanh(a @ b) ** 2
    np.testing.assert_allclose(g[0], np.outer(slope, b), rtol=1e-12)
    np.testing.assert_allclose(g[1], slope @ a, rtol=1e-12)
    again = pickle.loads(pickle.dumps(op.__wrapped__))
    np.testing.assert_array_equal(again(a, b)[0], y)


def test_a_graph_in_a_compiled_function_and_twice_differentiated():
    x = pt.dvector("x")
    op = op_of(x, (x**4).sum(), mode=PLAIN)
    data = np.arange(3.0)
    np.testing.assert_allclose(pyop.compile(lambda x: op(x * 2))(data), np.sum((2 * data) ** 4))
    np.testing.assert_allclose(pyop.hessian(op)(data), np.diag(12 * data**2))


def test_a_graph_that_reads_shared_variables_is_stateful():
    x = pt.dvector("x")
    rate = pytensor.shared(2.0)
    op = op_of(x, x * rate, mode=PLAIN)
    assert op.stateful
    np.testing.assert_array_equal(op(np.ones(2)), [2, 2])
    rate.set_value(3.0)
    np.testing.assert_array_equal(op(np.ones(2)), [3, 3])
    with pytest.raises(ValueError, match="the graph reads y"):
        op_of(x, x + pt.dvector("y"))
    with pytest.raises(TypeError, match="takes and returns arrays"):
        op_of([x], [3])


def test_both_ways_in_one_graph():
    x = pt.dvector("x")
    inner = op_of(x, pt.exp(x), mode=PLAIN)
    y = pt.dvector("y")
    out = wrap(inner)(y).sum()
    f = compiled([y], [out, pytensor.grad(out, y)])
    value, g = f(np.arange(3.0))
    np.testing.assert_allclose(value, np.exp(np.arange(3.0)).sum())
    np.testing.assert_allclose(g, np.exp(np.arange(3.0)))


@pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="numba is not installed")
def test_by_numba():
    x, i = pt.dvector("x"), pt.lvector("i")
    out = wrap(take_sines)(x, i).sum()
    f = pytensor.function([x, i], [out, pytensor.grad(out, x)], mode="NUMBA")
    value, g = f(np.arange(3.0), np.array([0, 2, 2]))
    np.testing.assert_allclose(value, 2 * np.sin(2.0))
    np.testing.assert_allclose(g, [1, 0, 2 * np.cos(2.0)])


MODEL = """
import warnings
warnings.simplefilter("ignore")  # PyMC's and ArviZ's own
import numpy as np, pymc as pm, pyop
from pyop.interop.pytensor import wrap

data = np.random.default_rng(1).normal(1.5, 1.0, 50)

@pyop.op("float64[] -> float64[]")
def log_likelihood(mu):
    return -0.5 * np.sum((data - mu) ** 2)

@log_likelihood.vjp
def _(ct, mu):
    return ct * np.sum(data - mu)

def main():
    with pm.Model():
        mu = pm.Normal("mu", 0.0, 10.0)
        pm.Potential("likelihood", wrap(log_likelihood)(mu))
        trace = pm.sample(300, tune=300, chains=1, cores=1, random_seed=4, progressbar=False,
                          compute_convergence_checks=False)
    precision = 50 + 1 / 100
    draws = trace.posterior["mu"].values
    print(abs(draws.mean() - data.sum() / precision) * precision**0.5, draws.std() * precision**0.5)

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not importlib.util.find_spec("pymc"), reason="PyMC is not installed: pip install pymc")
def test_a_black_box_likelihood_samples_with_nuts(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    found = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    distance, spread = map(float, found.stdout.split())
    assert distance < 0.3, "standard deviations of the posterior"
    assert 0.8 < spread < 1.25
