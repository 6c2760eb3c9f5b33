"""Ops with several results, declared or by an abstract rule: each cotangent and tangent reaches its result."""

import collections
import dataclasses

import numpy as np
import pytest

import pyop
from pyop import NoRule
from pyop._tree import flatten

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Record:
    a: object
    b: object


FORMS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "named tuple": Pair,
    "dataclass": Record,
    "nested": lambda a, b: (a, {"q": [b]}),
}
X = np.array([1.0, 2.0, -0.5])


def declared(form, fn):
    return pyop.op(fn, inputs=("float64[n]",), outputs=form("float64[n]", "float64[]"))


def by_a_rule(form, fn):
    made = pyop.op(fn)
    made.abstract(lambda x, *, power=2: form(x, pyop.Spec(x.dtype, ())))
    return made


def numbers(x, power):
    return x**power, np.sum(x**3)


def slopes(cts, x, power):
    first, second = cts
    return first * power * x ** (power - 1) + second * 3 * x**2


def make(form, how, keyword=""):
    def both(x, *, power=2):
        result = form(*numbers(x, power))
        return pyop.saved(result, x * 1.0) if keyword == "saved" else result

    op = how(form, both)
    like = flatten(form(1, 2))[1]

    if keyword == "saved":

        @op.vjp
        def _(ct, x, *, saved, power=2):
            np.testing.assert_array_equal(saved, x)
            return slopes(like.flatten_up_to(ct), x, power)
    elif keyword == "needs":

        @op.vjp
        def _(ct, x, *, needs, power=2):
            assert needs == (True,)
            return slopes(like.flatten_up_to(ct), x, power)
    elif keyword == "out":

        @op.vjp
        def _(ct, x, *, out, power=2):
            assert flatten(out)[1] == like
            first, second = like.flatten_up_to(ct)
            return first * power * like.flatten_up_to(out)[0] / x + second * 3 * x**2
    else:

        @op.vjp
        def _(ct, x, *, power=2):
            return slopes(like.flatten_up_to(ct), x, power)

    @op.jvp
    def _(t, x, *, power=2):
        return form(power * x ** (power - 1) * t, np.sum(3 * x**2 * t))

    return op


def total(op, weights=(1.0, 2.0), **statics):
    def f(x):
        first, second = flatten(op(x, **statics))[0]
        return weights[0] * np.sum(np.sin(first)) + weights[1] * second**2

    return f


def expected(x, power, weights=(1.0, 2.0)):
    return weights[0] * np.cos(x**power) * power * x ** (power - 1) + weights[1] * 2 * np.sum(x**3) * 3 * x**2


@pytest.mark.parametrize("how", [declared, by_a_rule])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("keyword", ["", "saved", "needs", "out"])
def test_every_result_has_its_cotangent(how, form, keyword):
    op = make(form, how, keyword)
    for power in (2, 3):
        f = total(op, power=power)
        want = expected(X, power)
        np.testing.assert_allclose(pyop.grad(f)(X), want, rtol=1e-12)
        np.testing.assert_allclose(pyop.compile(pyop.grad(f))(X), want, rtol=1e-12)
        symbolic = pyop.trace(pyop.grad(f), "float64[n]").compile()
        np.testing.assert_allclose(symbolic(X), want, rtol=1e-12)
        along = lambda x, f=f: pyop.jvp(f, (x,), (np.ones(3),))[1]
        np.testing.assert_allclose([along(X), pyop.compile(along)(X)], np.sum(want), rtol=1e-12)
        t = pyop.Tensor(X, requires_grad=True)
        f(t).backward()
        np.testing.assert_allclose(t.grad, want, rtol=1e-12)


@pytest.mark.parametrize("how", [declared, by_a_rule])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_results_nobody_reads_and_second_derivatives(how, form):
    op = make(form, how)
    for k, weights in enumerate([(1.0, 0.0), (0.0, 1.0)]):

        def alone(x, k=k):
            part = flatten(op(x))[0][k]
            return np.sum(np.sin(part)) if k == 0 else part**2

        want = expected(X, 2, weights)
        np.testing.assert_allclose(pyop.grad(alone)(X), want, rtol=1e-12)
        np.testing.assert_allclose(pyop.compile(pyop.grad(alone))(X), want, rtol=1e-12)
        slope = (expected(X + 1e-6, 2, weights) - expected(X - 1e-6, 2, weights)) / 2e-6
        twice = lambda x, f=alone: pyop.grad(lambda z: np.sum(pyop.grad(f)(z)))(x)
        np.testing.assert_allclose(twice(X), slope, rtol=1e-6)
        np.testing.assert_allclose(pyop.compile(twice)(X), slope, rtol=1e-6)
        rows = np.stack([X, 2 * X, X - 1])
        by_row = pyop.vmap(lambda x, f=alone: f(x))(rows)
        np.testing.assert_allclose(by_row, [alone(row) for row in rows])


def test_the_abstract_rule_may_come_after_the_gradient_rule():
    @pyop.op
    def two(x):
        return {"a": x**2, "b": x**3}

    with pytest.raises(TypeError, match="abstract before the rule"):
        two.vjp(lambda ct, x, *, saved: ct)

    @two.vjp
    def _(ct, x):
        return ct["a"] * 2 * x + ct["b"] * 3 * x**2

    two.abstract(lambda x: {"a": x, "b": x})
    np.testing.assert_allclose(pyop.grad(lambda x: np.sum(two(x)["b"]))(X), 3 * X**2)


def test_integer_results_and_one_result_in_a_container():
    @pyop.op
    def three(x):
        return [np.argmax(x), x**2, len(x)]

    three.abstract(lambda x: [pyop.Spec("int64", ()), x, pyop.Spec("int64", ())])
    three.vjp(lambda ct, x: ct[1] * 2 * x)
    three.jvp(lambda t, x: [np.zeros((), np.int64), 2 * x * t, np.zeros((), np.int64)])
    one = pyop.op(lambda x: {"only": x**2})
    one.abstract(lambda x: {"only": x})
    one.vjp(lambda ct, x: ct["only"] * 2 * x)
    one.jvp(lambda t, x: {"only": 2 * x * t})
    for f in (lambda x: np.sum(three(x)[1]), lambda x: np.sum(one(x)["only"])):
        for g in (pyop.grad(f), pyop.compile(pyop.grad(f))):
            np.testing.assert_allclose(g(X), 2 * X)
        np.testing.assert_allclose(pyop.jvp(f, (X,), (X,))[1], np.sum(2 * X**2))
        np.testing.assert_allclose(pyop.compile(lambda x, f=f: pyop.jvp(f, (x,), (x,))[1])(X), np.sum(2 * X**2))


def test_a_tangent_in_another_container_is_an_error():
    op = make(FORMS["dict"], by_a_rule)
    op.jvp(lambda t, x, *, power=2: (t, np.sum(t)))
    with pytest.raises(TypeError, match="the jvp rule of op 'both' must return tangents in the containers"):
        pyop.jvp(total(op), (X,), (X,))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_jacobians_and_differences(form):
    for options, rules in (
        ({}, lambda op: (op.jac(lambda x: np.diag(2 * x)), op.jac(lambda x: 3 * x**2, of=1))),
        ({"grad": "fd"}, lambda op: None),
    ):
        op = pyop.op(lambda x: form(*numbers(x, 2)), **options)
        op.abstract(lambda x: form(x, pyop.Spec(x.dtype, ())))
        rules(op)
        f = total(op)
        for g in (pyop.grad(f), pyop.compile(pyop.grad(f))):
            np.testing.assert_allclose(g(X), expected(X, 2), rtol=1e-6)
        np.testing.assert_allclose(pyop.jvp(f, (X,), (X,))[1], np.sum(expected(X, 2) * X), rtol=1e-6)


def test_second_derivatives_through_residuals_are_refused():
    op = make(FORMS["tuple"], by_a_rule, "saved")
    with pytest.raises(NoRule, match="residuals"):
        pyop.grad(lambda x: np.sum(pyop.grad(total(op))(x)))(X)
