"""Functions of pyop.scipy: SciPy's own bits for arrays, and derivatives in every way there is."""

import pickle

import numpy as np
import pytest

import pyop
from pyop import NoRule

from .case import c, f, s, spd, well
from .ways import Call, disagreements

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
from pyop.scipy import linalg, signal, special, stats  # noqa: E402

X = np.array([0.3, 1.2, -0.7])


def factors(n, kind, lower):
    """As SciPy leaves them: with something in the other triangle."""
    low = np.linalg.cholesky(spd(n, kind=kind))
    return low + np.triu(kind(n, n), 1) if lower else low.conj().T + np.tril(kind(n, n), -1)


def banded(low, up, kind):
    ab = kind(low + up + 1, 5)
    ab[up] += 8
    return ab


CALLS = [
    (special.logsumexp, (s(5),), {}),
    (special.logsumexp, (s(5, 7),), {"axis": 1}),
    (special.logsumexp, (s(5, 7),), {"axis": -1, "keepdims": True}),
    (special.logsumexp, (s(5, 7),), {"axis": (0, 1)}),
    (special.logsumexp, (s(5, 7), 0, f(7)), {}),
    (special.logsumexp, (s(7), 0, f(5, 7)), {}),
    (special.logsumexp, (s(5, 7),), {"b": s(5, 7), "return_sign": True, "axis": 1}),
    (special.logsumexp, (c(5, 7),), {"axis": 1}),
    (special.logsumexp, (s(),), {}),
    (special.softmax, (s(5, 7),), {"axis": 1}),
    (special.softmax, (c(5, 7),), {"axis": 0}),
    (special.softmax, (s(5),), {}),
    (special.log_softmax, (s(5, 7),), {"axis": -1}),
    (special.log_softmax, (s(5, 7),), {}),
    (special.polygamma, (1, f(5)), {}),
    (special.polygamma, (np.arange(3)[:, None], f(5)), {}),
    (special.multigammaln, (f(5) + 2, 3), {}),
    (special.multigammaln, (f(2, 3) + 2, 1), {}),
]
for kind in (s, c):
    CALLS += [
        (linalg.expm, (kind(3, 3),), {}),
        (linalg.expm, (kind(2, 3, 3),), {}),
        (linalg.sqrtm, (spd(3, kind=kind),), {}),
        (linalg.sqrtm, (well(2, 3, 3, kind=kind),), {}),
        (linalg.solve_sylvester, (well(3, 3, kind=kind), well(4, 4, kind=kind), kind(3, 4)), {}),
        (linalg.solve_sylvester, (well(2, 3, 3, kind=kind), well(3, 3, kind=kind), kind(2, 3, 3)), {}),
        (linalg.solve_triangular, (well(2, 3, 3, kind=kind), kind(2, 3, 4)), {"lower": True}),
        (linalg.solve_triangular, (well(2, 3, 3, kind=kind), kind(3)), {}),
        (linalg.solve_triangular, (well(3, 3, kind=kind), kind(2, 3, 4), 1), {}),
        (signal.convolve, (kind(4, 3, 5), s(2, 2, 2)), {}),
        (signal.convolve, (np.asarray(kind()), np.asarray(kind())), {}),
    ]
    CALLS += [
        (linalg.solve_triangular, (well(3, 3, kind=kind), kind(3), trans, lower), {"unit_diagonal": unit})
        for trans in (0, 1, 2, "T")
        for lower in (False, True)
        for unit in (False, True)
    ]
    CALLS += [
        (linalg.solve_banded, ((low, up), banded(low, up, kind), kind(*shape)), {})
        for low, up in ((0, 0), (1, 1), (2, 1), (0, 2), (3, 1))
        for shape in ((5,), (5, 2))
    ]
    for lower in (False, True):
        CALLS += [
            (linalg.by_factor, (factors(3, kind, lower), kind(3, 2), lower), {}),
            (linalg.by_factor, (factors(3, kind, lower), kind(3), lower), {}),
            (linalg.factor, (spd(3, kind=kind), lower), {}),
        ]
    CALLS += [
        (signal.convolve, pair, {"mode": mode, "method": method})
        for pair in ((kind(7), s(3)), (kind(3), kind(7)), (kind(5, 7), kind(3, 2)), (s(3, 2), kind(5, 7)))
        for mode, method in (("full", "auto"), ("same", "direct"), ("valid", "fft"))
    ]

DENSITIES = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
for method in DENSITIES:
    CALLS += [
        (getattr(stats.norm, method), (s(5), s(5), f(5)), {}),
        (getattr(stats.norm, method), (s(5, 7),), {"loc": s(7), "scale": f(5, 1)}),
    ]
    for name, count in (("t", 1), ("gamma", 1), ("chi2", 1), ("beta", 2)):
        x, shapes = f(5, low=0.1, high=0.8), [f(5) + 1.5 for _ in range(count)]
        fixed = shapes if "pdf" in method else [2.5] * count
        CALLS.append((getattr(getattr(stats, name), method), (x, *fixed, s(5) * 0.01 - 0.03, f(5) + 0.5), {}))
        CALLS.append((getattr(getattr(stats, name), method), (x, *[2.5] * count), {"scale": f(5, 1) + 0.5}))
for method in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
    CALLS.append((getattr(stats.poisson, method), (np.array([0, 1, 3, 2, 7]), f(5)), {}))
    CALLS.append((getattr(stats.poisson, method), (np.array([2, 1, 3, 2, 7]),), {"mu": f(5), "loc": 1}))


def label(call):
    func, args, kwargs = call
    return f"{func.__qualname__}-{[getattr(a, 'shape', a) for a in args]}-{kwargs and list(kwargs)}".replace(" ", "")


def scipys(func):
    for home in (scipy.special, scipy.linalg, scipy.signal):
        if hasattr(home, func.__name__):
            return getattr(home, func.__name__)
    distribution, _, method = func.__qualname__.partition(".")
    return getattr(getattr(scipy.stats, distribution), method) if method else None


def test_every_way_says_what_differences_say():
    wrong = []
    for func, args, kwargs in CALLS:
        base = Call(func, args, kwargs)
        for which in [base.all, *([k] for k in base.all if len(base.all) > 1)]:
            refused = []
            name = label((func, args, kwargs))
            wrong += [
                f"{name} {which}: {text:.300}" for text in disagreements(Call(*base.parts(), which), 1e-6, refused)
            ]
            wrong += [f"{name} {which}: {text:.300}" for _, text in refused]
    assert not wrong, "\n".join(wrong)


def test_second_derivatives():
    wrong = []
    for func, args, kwargs in CALLS[::2]:
        base = Call(func, args, kwargs)
        seeds = [np.cos(np.arange(np.size(y))).reshape(np.shape(y)) for y in base(*base.arrays)]
        again = Call(lambda *xs, base=base, seeds=seeds: pyop.vjp(base, *xs)[1](seeds), tuple(base.arrays), {})
        found = disagreements(again, 2e-6)
        wrong += [f"{label((func, args, kwargs))}: {text:.300}" for text in found]
    assert not wrong, "\n".join(wrong)


def test_arrays_have_the_bits_of_scipy():
    for func, args, kwargs in CALLS:
        theirs = scipys(func)
        if theirs is None:
            continue
        want, found = theirs(*args, **kwargs), func(*args, **kwargs)
        base = Call(func, args, kwargs)
        compiled = pyop.compile(lambda *xs, base=base: base(*xs))(*base.arrays)
        eager = base(*[pyop.Tensor(x, requires_grad=True) for x in base.arrays])
        for ours in (found, compiled, [t.detach().numpy() for t in eager]):
            parts = [ours] if isinstance(ours, np.ndarray | np.generic) else ours
            wants = want if isinstance(want, tuple) else [want]
            for a, b in zip(parts, wants, strict=True):
                np.testing.assert_array_equal(np.asarray(a), b)
                assert np.asarray(a).dtype == np.asarray(b).dtype


def test_cho_factor_and_cho_solve():
    a, b = spd(3), s(3)
    solved = lambda a, b, lower: linalg.cho_solve(linalg.cho_factor(a, lower), b)
    for lower in (False, True):
        call = Call(lambda a, b, lower=lower: solved(a, b, lower), (a, b), {})
        assert not list(disagreements(call))
        mine, theirs = linalg.cho_factor(a, lower), scipy.linalg.cho_factor(a, lower)
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert bool(mine[1]) == bool(theirs[1]) == lower


def test_autograd_says_the_same():
    autograd = pytest.importorskip("autograd", reason="the autograd package is not installed")
    import autograd.scipy.linalg as al
    import autograd.scipy.signal as asig
    import autograd.scipy.special as asp
    import autograd.scipy.stats as ast

    x, a, b, scale = f(5, low=0.1, high=0.8), f(5) + 1.5, f(5) + 1.5, f(5) + 0.5
    pairs = [
        (special.logsumexp, asp.logsumexp, (s(5, 7),)),
        (lambda x: special.logsumexp(x, 1), lambda x: asp.logsumexp(x, 1), (s(5, 7),)),
        (lambda x: special.polygamma(2, x), lambda x: asp.polygamma(2, x), (x,)),
        (lambda a: special.multigammaln(a, 2), lambda a: asp.multigammaln(a, 2), (a,)),
        (linalg.sqrtm, al.sqrtm, (spd(3),)),
        (linalg.solve_sylvester, al.solve_sylvester, (well(3, 3), well(4, 4), s(3, 4))),
        (linalg.solve_triangular, al.solve_triangular, (well(3, 3), s(3, 2))),
        (lambda ab, b: linalg.solve_banded((1, 2), ab, b), lambda ab, b: al.solve_banded((1, 2), ab, b),
         (banded(1, 2, s), s(5))),
        (lambda a, b: signal.convolve(a, b, "full"), lambda a, b: asig.convolve(a, b, mode="full"), (s(5, 7), s(3, 2))),
    ]  # fmt: skip
    for name, shapes in (("norm", ()), ("t", (a,)), ("gamma", (a,)), ("beta", (a, b))):
        mine, theirs = getattr(stats, name), getattr(ast, name)
        rest = (np.zeros(5), scale) if name in ("norm", "t") else ()
        for method in ("pdf", "logpdf"):
            pairs.append((getattr(mine, method), getattr(theirs, method), (x, *shapes, *rest)))
    pairs.append((lambda x: stats.chi2.logpdf(x, 3.0), lambda x: ast.chi2.logpdf(x, 3.0), (x,)))
    k = np.array([0.0, 1.0, 3.0, 2.0, 7.0])
    pairs.append((lambda mu: stats.poisson.logpmf(k, mu), lambda mu: ast.poisson.logpmf(k, mu), (a,)))
    pairs.append((lambda mu: stats.poisson.cdf(k, mu), lambda mu: ast.poisson.cdf(k, mu), (a,)))
    for mine, theirs, args in pairs:
        ct = np.cos(np.arange(np.size(mine(*args)))).reshape(np.shape(mine(*args)))
        found = pyop.vjp(mine, *args)[1](ct)
        want = autograd.make_vjp(lambda xs, theirs=theirs: theirs(*xs))(args)[0](ct)
        for p, q in zip(found, want, strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-9, atol=1e-11)


def test_what_has_no_closed_form_is_refused():
    for func, args, k, name in (
        (stats.gamma.cdf, (X**2, 1.5), 1, r"pyop.scipy.stats.gamma.cdf .* argument 1 \(a\)"),
        (stats.beta.logcdf, (X**2 / 2, 1.5, 2.0), 2, r"argument 2 \(b\)"),
        (stats.t.cdf, (X, 3.0), 1, r"argument 1 \(df\)"),
        (stats.poisson.pmf, (X, 3.0), 0, r"argument 0 \(k\)"),
        (special.polygamma, (1.0, X), 0, r"argument 0 \(n\)"),
    ):
        total = lambda *xs, func=func: np.sum(func(*xs))
        for way in (pyop.grad(total, k), pyop.compile(pyop.grad(total, k))):
            with pytest.raises(NoRule, match=name + r'.*grad="fd"'):
                way(*args)
    with pytest.raises(NoRule, match="return_sign"):
        pyop.vjp(lambda x: special.logsumexp(x, return_sign=True), X + 1j)[1]((1.0, 1.0))


def test_outside_of_the_support():
    """A density is zero there, and stays so; its logarithm is -inf, which has no slope."""
    outside = np.array([-1.0, 0.5, 3.0])
    total = lambda f, *rest: lambda x: np.sum(f(x, *rest))
    for way in (lambda f: f, pyop.compile):
        got = way(pyop.grad(total(stats.beta.pdf, 2.0, 3.0)))(outside)
        np.testing.assert_allclose(got[[0, 2]], 0.0)
        np.testing.assert_allclose(way(pyop.grad(total(stats.gamma.cdf, 2.0)))(outside)[0], 0.0)
        assert np.isnan(way(pyop.grad(total(stats.chi2.logpdf, 3.0)))(outside)[0])
        assert np.all(np.isfinite(way(pyop.grad(total(stats.norm.logcdf)))(np.array([-40.0, 0.0, 40.0]))))
        np.testing.assert_array_equal(way(pyop.grad(special.logsumexp))(np.full(3, -np.inf)), 0.0)


def test_sizes_that_are_not_known():
    def total(x, m):
        one = special.logsumexp(x) + np.sum(special.softmax(x) * x) + np.sum(stats.norm(0.1, 2.0).logpdf(x))
        two = np.sum(linalg.expm(m / 9)) + np.sum(linalg.solve_triangular(m, x))
        return one + two + np.sum(signal.convolve(x, x[1:]) ** 2) + np.sum(linalg.solve_banded((1, 1), m[:3] + 5, x))

    m = well(3, 3)
    plan = pyop.trace(pyop.grad(total, (0, 1)), "float64[n]", "float64[n,n]").compile()
    for found, want in zip(plan(X, m), pyop.grad(total, (0, 1))(X, m), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-11)
    with pytest.raises(NoRule, match='use mode="full"'):
        pyop.trace(pyop.grad(lambda x: np.sum(signal.convolve(x, x, "same"))), "float64[n]")


def test_batches_pickles_and_files(tmp_path):
    rows = np.stack([X, 2 * X])
    by_row = pyop.vmap(pyop.grad(special.logsumexp))(rows)
    np.testing.assert_allclose(by_row, special.softmax(rows, axis=1), rtol=1e-12)
    graph = pyop.trace(
        lambda x: stats.norm.pdf(x) + linalg.cho_solve(linalg.cho_factor(np.diag(x * x)), x), "float64[3]"
    )
    want = scipy.stats.norm.pdf(X) + 1 / X
    np.testing.assert_allclose(pickle.loads(pickle.dumps(graph.compile()))(X), want)
    graph.save(tmp_path / "graph.onnx")
    np.testing.assert_allclose(pyop.load(tmp_path / "graph.onnx").compile()(X), want)
    assert pickle.loads(pickle.dumps(stats.norm)) is stats.norm


def test_the_rest_is_scipys():
    assert special.gamma is scipy.special.gamma
    assert stats.uniform is scipy.stats.uniform
    assert stats.norm.ppf(0.5) == 0.0
    assert stats.norm(1.0, 2.0).mean() == 1.0
    np.testing.assert_array_equal(linalg.inv(np.eye(2)), np.eye(2))
    with pytest.raises(AttributeError):
        _ = stats.norm.no_such_thing


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: scipy.special.logsumexp(x), "special.logsumexp"),
        (lambda x: scipy.special.softmax(x)[0], "special.softmax"),
        (lambda x: scipy.special.polygamma(1, x)[0], "special.polygamma"),
        (lambda x: scipy.stats.norm.logpdf(x)[0], "stats.norm.logpdf"),
        (lambda x: scipy.stats.gamma(2.0).cdf(x)[0], "stats.gamma.cdf"),
        (lambda x: scipy.linalg.expm(np.multiply.outer(x, x))[0, 0], "linalg.expm"),
        (lambda x: scipy.linalg.solve_banded((0, 0), x[None], x)[0], "linalg.solve_banded"),
        (lambda x: scipy.linalg.cho_solve((np.multiply.outer(x, x), True), x)[0], "linalg.cho_solve"),
        (
            lambda x: scipy.linalg.solve_sylvester(np.eye(len(x)), np.eye(1), x[:, None])[0, 0],
            "linalg.solve_sylvester",
        ),
        (lambda x: scipy.signal.convolve(x, x)[0], "signal.convolve"),
    ],
)
def test_plain_scipy_names_the_counterpart(function, name):
    said = f"call pyop.scipy.{name} in place of SciPy's"
    for way in (lambda: pyop.grad(function)(X), lambda: pyop.jvp(function, (X,), (X,))):
        with pytest.raises(TypeError, match=said):
            way()
    with pytest.warns(pyop.RetraceWarning, match=said):
        np.testing.assert_array_equal(pyop.compile(function)(X), function(X))
