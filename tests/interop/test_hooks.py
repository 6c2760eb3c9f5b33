"""`pyop.interop.hooks`: what adapters are made of, held against the ten ops and their references in plain NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.interop.hooks import Hooks

from .ten_ops import CASES, product, softsign, take_sines


class Size:
    """A framework's size, which adds, multiplies and divides, and must never be asked for its number."""

    def __init__(self, text):
        self.text = str(text)

    def _made(self, sign, other, swapped=False):
        a, b = str(self), str(other)
        return Size(f"({b}{sign}{a})" if swapped else f"({a}{sign}{b})")

    def __add__(self, other):
        return self._made("+", other)

    def __radd__(self, other):
        return self._made("+", other, True)

    def __sub__(self, other):
        return self._made("-", other)

    def __mul__(self, other):
        return self._made("*", other)

    def __rmul__(self, other):
        return self._made("*", other, True)

    def __floordiv__(self, other):
        return self._made("//", other)

    def __str__(self):
        return self.text

    def __eq__(self, other):
        raise AssertionError("a symbolic size was compared")

    def __bool__(self):
        raise AssertionError("a symbolic size was asked")

    __hash__ = __index__ = __int__ = __bool__


def by_text(size):
    return size if type(size) is int else size.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_and_backward(case):
    hooks = Hooks(case.op)
    arguments = case.made()
    kept = [x.copy() for x in arguments]
    results, residuals = hooks.forward(*arguments, **case.statics)
    expected = flatten(case.reference(*arguments, **case.statics))[0]
    assert len(results) == len(expected) == len(hooks.outputs)
    for y, e in zip(results, expected, strict=True):
        if case.exact:
            np.testing.assert_allclose(y, e, rtol=1e-6)
        else:
            assert ((y >= e) & (y < e + 1)).all()
    assert all(np.array_equal(x, k) for x, k in zip(arguments, kept, strict=True))
    assert hooks.differentiable is (case.gradient is not None)
    if case.gradient is None:
        with pytest.raises(pyop.NoRule, match=case.op.name):
            hooks.backward(residuals, [np.ones_like(y) for y in results])
        return
    random = np.random.default_rng(1)
    cts = [random.normal(size=y.shape).astype(y.dtype) for y in results]
    tree = hooks.out_tree.unflatten(cts)
    want = case.gradient(tree, *arguments)
    found = hooks.backward(residuals, cts)
    for g, w in zip(found, want, strict=True):
        assert (g is None) is (w is None)
        if w is not None:
            np.testing.assert_allclose(g, w, rtol=1e-4 if g.dtype == np.float32 else 1e-12)
    for k, w in enumerate(want):
        if w is not None:
            one = hooks.backward(residuals, cts, [j == k for j in range(len(want))])
            assert [g is None for g in one] == [j != k for j in range(len(want))]
            assert np.array_equal(one[k], found[k])
    # None is a cotangent of zeros
    zero = hooks.backward(residuals, [None] * len(cts))
    assert all(g is None or not g.any() for g in zero)


@pytest.mark.parametrize("case", [case for case in CASES if case.gradient], ids=lambda case: case.name)
def test_the_gradient_as_an_op(case):
    hooks = Hooks(case.op)
    arguments = case.made()
    results, residuals = hooks.forward(*arguments, **case.statics)
    cts = [np.ones_like(y) for y in results]
    pull = hooks.vjp_op()
    assert pull is hooks.vjp_op()
    extra = [*results] * hooks.reads_results + [residuals.context] * hooks.saves
    found = pull(*cts, *arguments, *extra, **case.statics)
    found = found if isinstance(found, tuple) else (found,)
    want = [g for g in hooks.backward(residuals, cts) if g is not None]
    assert all(np.array_equal(f, w) for f, w in zip(found, want, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if case.exact], ids=lambda case: case.name)
def test_batches(case):
    hooks = Hooks(case.op)
    examples = [case.made(seed=k) for k in range(3)]
    for axes in ([True] * len(examples[0]), [True] + [False] * (len(examples[0]) - 1)):
        arguments = [
            np.stack([e[k] for e in examples]) if batched else examples[0][k] for k, batched in enumerate(axes)
        ]
        one_each = [
            hooks.call([x[k] if b else x for x, b in zip(arguments, axes, strict=True)], case.statics) for k in range(3)
        ]
        batch = hooks.batch_op(axes)
        found = batch(*arguments, **case.statics)
        found = found if isinstance(found, tuple) else (found,)
        want = [np.stack(parts) for parts in zip(*one_each, strict=True)]
        assert all(np.array_equal(f, w) for f, w in zip(found, want, strict=True))
        kinds = [(x.dtype, x.shape) for x in arguments]
        assert Hooks(batch).infer(kinds, case.statics) == [(y.dtype, y.shape) for y in want]
        if case.gradient is None:
            continue
        _, kept = Hooks(batch).forward(*arguments, **case.statics)
        gradients = Hooks(batch).backward(kept, [np.ones_like(y) for y in want])
        for k, g in enumerate(gradients):
            if g is None:
                continue
            each = []
            for j in range(3):
                results, residuals = hooks.forward(
                    *[x[j] if b else x for x, b in zip(arguments, axes, strict=True)], **case.statics
                )
                each.append(hooks.backward(residuals, [np.ones_like(y) for y in results])[k])
            np.testing.assert_allclose(g, np.stack(each) if axes[k] else sum(each), rtol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if case.exact], ids=lambda case: case.name)
def test_specs_of_results(case):
    hooks = Hooks(case.op)
    arguments = case.made(5)
    results, _ = hooks.forward(*arguments, **case.statics)
    kinds = [(x.dtype, x.shape) for x in arguments]
    assert hooks.infer(kinds, case.statics) == [(y.dtype, y.shape) for y in results]


def test_symbolic_sizes_are_never_asked():
    told = []
    m, k, n = Size("m"), Size("k"), Size("n")
    f8 = np.dtype(float)
    ((_, shape),) = Hooks(product).infer(
        [(f8, (m, k)), (f8, (Size("k2"), n))], key=by_text, equal=lambda a, b: told.append((str(a), str(b)))
    )
    assert list(map(str, shape)) == ["m", "n"]
    assert told == [("k", "k2")]
    double = pyop.op(lambda x: x, "float64[n] -> float64[3*n+1, n//2]")
    ((_, shape),) = Hooks(double).infer([(f8, (n + 1,))], key=by_text)
    assert eval(str(shape[0]), {"n": 5}) == 19
    assert eval(str(shape[1]), {"n": 5}) == 3
    half = pyop.op(lambda x: x, "float64[2*n] -> float64[n]")
    ((_, shape),) = Hooks(half).infer([(f8, (m,))], key=by_text)
    assert eval(str(shape[0]), {"m": 8}) == 4
    ((_, shape),) = Hooks(softsign).infer([(f8, (m, 3))], key=by_text)
    assert str(shape[0]) == "m"
    assert shape[1] == 3
    assert Hooks(take_sines).infer([(np.dtype("f4"), (3,)), (np.dtype("i8"), (m,))], key=by_text)[0][1] == (m,)
    looped = pyop.op(np.dot, "(n),(n)->()", dtype="float64")
    ((_, shape),) = Hooks(looped).infer([(f8, (m, 3)), (f8, (3,))], key=by_text)
    assert shape == (m,)
    with pytest.raises(ValueError, match="the size is 4, not 3"):
        Hooks(pyop.op(lambda x: x, "float64[3] -> float64[3]")).infer([(f8, (4,))])
    with pytest.raises(ValueError, match="the dtype is int64"):
        Hooks(softsign).infer([(np.dtype(int), (4,))])


def test_specs_that_a_function_computes():
    @pyop.op
    def pairs(x, *, width=2):
        return np.stack([x[k : len(x) - width + 1 + k] for k in range(width)], axis=1)

    @pairs.abstract
    def _(x, *, width=2):
        return pyop.Spec(x.dtype, (x.shape[0] - width + 1, width))

    hooks = Hooks(pairs)
    assert len(hooks.outputs) == 1
    assert hooks.out_tree.is_leaf
    ((_, shape),) = hooks.infer([(np.dtype(float), (Size("m"),))], {"width": 3}, key=by_text)
    assert eval(str(shape[0]), {"m": 9}) == 7
    assert shape[1] == 3
    assert hooks.infer([(np.dtype(float), (9,))]) == [(np.dtype(float), (8, 2))]
    assert Hooks(pyop.op(lambda x: x)).infer([(np.dtype(float), (3,))]) == [(None, None)]


def test_containers_that_a_function_tells():
    @pyop.op
    def both(x, *, swapped=False):
        return {"sum": x.sum(), "x": x * 1} if not swapped else {"x": x * 1}

    @both.abstract
    def _(x, *, swapped=False):
        found = {"sum": pyop.Spec(x.dtype, ()), "x": pyop.Spec(x.dtype, x.shape)}
        return {"x": found["x"]} if swapped else found

    hooks = Hooks(both)
    assert [each.name for each in hooks.outputs] == ["['sum']", "['x']"]
    assert len(hooks.call([np.ones(3)], {})) == 2
    with pytest.raises(TypeError, match="returned 1 arrays in another container"):
        hooks.call([np.ones(3)], {"swapped": True})

    @pyop.op
    def unruly(x):
        return x

    @unruly.abstract
    def _(x):
        raise RuntimeError

    assert Hooks(unruly).outputs is None


def test_unknown_sizes():
    chosen = pyop.op(lambda x: x[x > 0], "float64[n] -> float64[m!]")
    assert Hooks(chosen).infer([(np.dtype(float), (3,))]) == [(np.dtype(float), (None,))]
    assert Hooks(pyop.op(lambda x: x, "float64[...] -> float64")).infer([(np.dtype(float), (3,))]) == [
        (np.dtype(float), None)
    ]


def test_second_derivatives():
    pull = Hooks(softsign).vjp_op()
    x = np.array([0.5, 2.0])
    hooks = Hooks(pull)
    results, kept = hooks.forward(np.ones(2), x)
    ct, second = hooks.backward(kept, [np.ones(2)])
    np.testing.assert_allclose(ct, results[0])
    np.testing.assert_allclose(second, -2 / (1 + x) ** 3)
    with pytest.raises(pyop.NoRule, match="residuals"):
        hooks = Hooks(Hooks(take_sines).vjp_op())
        arrays = take_sines, np.ones(3), np.arange(3)
        results, kept = Hooks(take_sines).forward(*arrays[1:])
        _, kept = hooks.forward(np.ones(3), *arrays[1:], kept.context)
        hooks.backward(kept, [np.ones(3)])


def test_second_derivatives_by_a_rule_of_the_rule():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def times(x, y):
        return np.array([float(a) * float(b) for a, b in zip(x, y, strict=True)])

    @times.vjp
    def pull(ct, x, y):
        return np.array([float(a) for a in ct * y]), np.array([float(a) for a in ct * x])

    @pull.vjp
    def _(cts, ct, x, y):
        return cts[0] * y + cts[1] * x, cts[1] * ct, cts[0] * ct

    x, y, ct = np.array([2.0, 3.0]), np.array([5.0, 7.0]), np.array([1.0, 10.0])
    for needs, want in (((True, True), (y + x, ct, ct)), ((False, True), (x, ct, 0 * ct))):
        hooks = Hooks(Hooks(times).vjp_op(needs))
        results, kept = hooks.forward(ct, x, y)
        assert np.array_equal(results[-1], ct * x)
        found = hooks.backward(kept, [np.ones(2)] * len(results))
        assert all(np.array_equal(f, w) for f, w in zip(found, want, strict=True))


def test_tangents():
    hooks = Hooks(pyop.op(np.multiply, "float64[n], float64[n] -> float64[n]"))
    x, y, t = np.arange(3.0), np.ones(3), np.full(3, 2.0)
    results, tangents = hooks.jvp([x, y], [None, t])
    assert np.array_equal(results[0], x)
    assert np.array_equal(tangents[0], 2 * x)
    assert np.array_equal(hooks.jvp_op([1])(t, x, y, results[0]), 2 * x)
    assert hooks.has_jvp
    assert not Hooks(softsign).has_jvp
    with pytest.raises(pyop.NoRule, match="forward mode"):
        Hooks(softsign).jvp([x], [t])


def test_contexts_that_were_copied():
    hooks = Hooks(take_sines)
    arguments = np.ones(3), np.arange(3)
    _, kept = hooks.forward(*arguments)
    number = int(kept.context[0])
    pull = hooks.vjp_op()
    want = pull(np.ones(3), *arguments, kept.context)
    assert hooks.context(number, arguments, {}).base is kept.context.base
    del kept
    assert np.array_equal(pull(np.ones(3), *arguments, hooks.context(number, arguments, {})), want)

    @pyop.op("float64[n] -> float64[n]", stateful=True)
    def drawn(x):
        return pyop.saved(x * 2, 2.0)

    drawn.vjp(lambda ct, x, *, saved: ct * saved)
    with pytest.raises(RuntimeError, match="'drawn' has saved"):
        Hooks(drawn).context(number, [np.ones(3)], {})


def test_what_is_refused():
    with pytest.raises(TypeError, match="expected an op"):
        Hooks(np.sin)
    with pytest.raises(TypeError, match="any number of arrays"):
        Hooks(pyop.op(lambda *xs: xs[0]))
    with pytest.raises(TypeError, match="integers"):
        Hooks(pyop.op(lambda x: x, "int64[n] -> int64[n]")).vjp_op()
    with pytest.raises(ValueError, match="axes="):
        Hooks(softsign).batch_op((False,))
    with pytest.raises(ValueError, match="examples"):
        Hooks(product).batch_op((True, True))(np.ones((2, 3, 3)), np.ones((3, 3, 3)))


def test_an_empty_batch():
    assert Hooks(product).batch_op((True, False))(np.ones((0, 3, 4)), np.ones((4, 2))).shape == (0, 3, 2)


def test_pickles():
    hooks = pickle.loads(pickle.dumps(Hooks(softsign)))
    assert hooks.op is softsign
    assert np.array_equal(pickle.loads(pickle.dumps(hooks.vjp_op()))(np.ones(2), np.zeros(2)), np.ones(2))
