"""Functions that NumPy refuses a list of Tensors run again as their twins, and all is as if they ran once."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

X = np.array([1.0, 2.0, 4.0])


def helper(x):
    return np.linalg.norm([x[0], x[1]])


WAYS = {
    "grad": lambda f: pyop.grad(f)(X),
    "vjp": lambda f: pyop.vjp(f, X)[1](np.ones(())),
    "jvp": lambda f: pyop.jvp(f, (X,), (np.ones(3),)),
    "vmap": lambda f: pyop.vmap(f)(np.stack([X, X])),
    "trace": lambda f: pyop.trace(f, "float64[3]"),
    "hessian": lambda f: pyop.hessian(f)(X),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_it_changes_it_changes_once(way):
    seen, rng = [], np.random.default_rng(5)
    state = {"total": 0.0, "count": 0}
    held = np.zeros(2)

    def f(x):
        state["count"] += 1
        seen.append(rng.standard_normal())
        held[0] += 1
        return np.mean([x[0], x[1]]) * seen[-1]

    def alone(x):
        state["count"] += 1
        seen.append(rng.standard_normal())
        held[0] += 1
        return np.mean(np.stack([x[0], x[1]])) * seen[-1]

    outcomes = []
    for function in (alone, f):
        seen[:], held[:], state["count"] = [], 0, 0
        rng.bit_generator.state = np.random.default_rng(5).bit_generator.state
        WAYS[way](function)
        WAYS[way](function)
        outcomes.append(([*seen], held[0], state["count"]))
    assert outcomes[0] == outcomes[1]


def test_functions_of_the_module():
    np.testing.assert_allclose(pyop.grad(lambda x: helper(x * 2))(X), np.array([1, 2, 0]) * 2 / np.sqrt(5))


def test_methods_partials_and_callables():
    class Model:
        calls = 0

        def loss(self, x):
            self.calls += 1
            return np.sum(np.square([x[0], 2.0]))

        __call__ = loss

    model = Model()
    np.testing.assert_array_equal(pyop.grad(model.loss)(X), [2, 0, 0])
    np.testing.assert_array_equal(pyop.grad(model)(X), [2, 0, 0])
    assert model.calls == 2


def test_a_branch_that_comes_late_is_right_or_refused():
    def f(x, listed):
        return np.mean([x[0], x[1]]) if listed else x[0] * 3

    found = []
    for listed in (False, True, True, False):
        try:
            found.append(pyop.grad(f)(X, listed).tolist())
        except TypeError as error:
            found.append("conversion to an array" in str(error))
    assert found in (
        [[3, 0, 0], True, [0.5, 0.5, 0], [3, 0, 0]],
        [[3, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 0], [3, 0, 0]],
    )


def test_what_no_twin_helps_is_refused_as_before():
    def f(x):
        return float(x[0]) * np.mean([x[1], x[2]])

    for _ in range(2):
        with pytest.raises(TypeError, match="takes the numbers of a Tensor out of what is recorded"):
            pyop.grad(f)(X)


def test_what_it_raises_behind_a_list_is_its_own():
    class Own(Exception):
        pass

    def f(x):
        if np.mean([x[0], x[1]]) > 1:
            raise Own("too large") from KeyError("k")
        return x[0]

    for _ in range(2):
        with pytest.raises(Own, match="too large") as caught:
            pyop.grad(f)(X)
        assert isinstance(caught.value.__cause__, KeyError)


def test_arguments_that_were_written_are_not_written_twice():
    def f(x):
        x += 1.0
        return np.mean([x[0], x[1]])

    x = X.copy()
    for k in range(2):
        with pytest.warns(pyop.RetraceWarning, match="so its derivative is compiled"):
            np.testing.assert_array_equal(pyop.grad(f)(x), [0.5, 0.5, 0])
        np.testing.assert_array_equal(x, X + k + 1)


def test_tensors_of_their_own_are_refused():
    t = pyop.Tensor(X, requires_grad=True)
    with pytest.raises(TypeError, match="conversion to an array"):
        np.mean([t[0], t[1]])
    with pyop.Graph() as g:
        x = g.input("float64[3]")
        with pytest.raises(TypeError, match="was asked for"):
            np.mean([x[0], x[1]])
