"""Every rule against central differences and against the `autograd` package: forward, backward, and once more."""

import warnings

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.gradients import table

from .cases import cases

STEP = 1e-6
NAMES = {5: "n", 7: "m"}

rng = np.random.default_rng(3)


def is_differentiable(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def like(x):
    noise = rng.standard_normal(x.shape)
    return noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise


def inner(xs, ys):
    """The real inner product of two lists of arrays."""
    return sum(float(np.real(np.vdot(x, y))) for x, y in zip(xs, ys, strict=True))


class Problem:
    """A case as a function of its arrays alone, which returns a list of arrays of real or complex numbers."""

    def __init__(self, case):
        self.case = case
        leaves = table.leaves(case.args, case.kwargs)
        self.which = [k for k, leaf in enumerate(leaves) if is_differentiable(leaf)]
        self.arrays = [leaves[k] for k in self.which]
        self.tangents = [like(x) for x in self.arrays]

    def __call__(self, *arrays):
        args, kwargs = table.replaced(self.case.args, self.case.kwargs, dict(zip(self.which, arrays, strict=True)))
        results = flatten(self.case.func(*args, **kwargs))[0]
        dtypes = [
            y.spec.dtype if isinstance(y, pyop.Value) else y.dtype for y in results
        ]  # of some not known in graphs
        return [y for y, dtype in zip(results, dtypes, strict=True) if dtype is None or dtype.kind in "fc"]

    def moved(self, step):
        return [x + step * t for x, t in zip(self.arrays, self.tangents, strict=True)]

    def slope(self, function):
        """The change of a list of arrays along the tangents, by central differences."""
        pairs = zip(function(*self.moved(STEP)), function(*self.moved(-STEP)), strict=True)
        return [(high - low) / (2 * STEP) for high, low in pairs]


def spec_of(x, symbolic):
    shape = tuple(NAMES.get(size, size) if symbolic else size for size in x.shape)
    return pyop.Spec(x.dtype, shape)


def close(found, expected, tolerance):
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def check(problem, symbolic):
    arrays, tangents = problem.arrays, problem.tangents
    expected = problem(*arrays)
    cts = [like(np.asarray(y)) for y in expected]
    count = len(arrays)

    def everything(*given):
        xs, ts, seeds = given[:count], given[count : 2 * count], list(given[2 * count :])
        value, pushed = pyop.jvp(problem, xs, ts)
        pulled = pyop.vjp(problem, *xs)[1](seeds)
        if not problem.case.second:
            return value, pushed, pulled, ()
        return value, pushed, pulled, pyop.jvp(lambda *zs: pyop.vjp(problem, *zs)[1](seeds), xs, ts)[1]

    specs = [spec_of(x, symbolic) for x in (*arrays, *tangents)]
    plan = pyop.trace(everything, *specs, *[pyop.Spec(ct.dtype, ct.shape) for ct in cts]).compile()
    value, pushed, pulled, second = plan(*arrays, *tangents, *cts)
    close(value, expected, 1e-12)
    close(pushed, problem.slope(problem), 2e-7)
    for x, part in zip(arrays, pulled, strict=True):
        assert (part.shape, part.dtype) == (x.shape, x.dtype)
    lhs, rhs = inner(cts, pushed), inner(pulled, tangents)
    assert lhs == pytest.approx(rhs, rel=1e-9, abs=1e-9 * max(1.0, sum(float(np.sum(np.abs(p))) for p in pulled)))
    if problem.case.second:
        close(second, problem.slope(lambda *xs: plan(*xs, *tangents, *cts)[2]), 2e-6)


@pytest.mark.parametrize("case", cases, ids=lambda case: f"{case.group}-{case.id}")
def test_rule(case):
    # Derivatives at infinity are as infinite as they are.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        check(Problem(case), symbolic=not case.fixed)


# --- the other library


def counterpart(func):
    """The function of the same name in ``autograd.numpy``; None if it has none."""
    anp = pytest.importorskip("autograd.numpy", reason="the autograd package is not installed")
    home = {"numpy.linalg": anp.linalg, "numpy.fft": anp.fft}.get(func.__module__, anp)
    return getattr(home, func.__name__, None)


@pytest.mark.parametrize(
    "case", [case for case in cases if case.oracle and not case.label], ids=lambda case: f"{case.group}-{case.id}"
)
def test_rule_agrees_with_autograd(case):
    """Its cotangents are those of complex-linear functions: the conjugates of ours, for conjugate cotangents."""
    other = counterpart(case.func)
    autograd = pytest.importorskip("autograd")
    assert other is not None
    problem = Problem(case)

    def there(arrays):
        args, kwargs = table.replaced(case.args, case.kwargs, dict(zip(problem.which, arrays, strict=True)))
        return other(*args, **kwargs)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs, value = autograd.make_vjp(there)(tuple(problem.arrays))
        ct = like(np.asarray(value))
        expected = [np.conj(part) for part in theirs(np.conj(ct) if ct.ndim else type(value)(np.conj(ct)))]
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        _, pullback = pyop.vjp(problem, *problem.arrays)
        close(pullback([ct]), expected, 1e-10)


@pytest.mark.parametrize("case", [case for case in cases if case.second], ids=lambda case: f"{case.group}-{case.id}")
def test_second_derivatives_at_arrays(case):
    """The run forward through a recorded run backward, and two runs backward, say the same."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        problem = Problem(case)
        seeds = [like(np.asarray(y)) for y in problem(*problem.arrays)]
        again = [like(x) for x in problem.arrays]
        gradient = lambda *xs: pyop.vjp(problem, *xs)[1](seeds)
        _, pushed = pyop.jvp(gradient, tuple(problem.arrays), tuple(problem.tangents))
        _, pullback = pyop.vjp(gradient, *problem.arrays)
        lhs, rhs = inner(again, pushed), inner(pullback(tuple(again)), problem.tangents)
        assert lhs == pytest.approx(rhs, rel=1e-9, abs=1e-9 * max(1.0, sum(float(np.sum(np.abs(p))) for p in pushed)))
