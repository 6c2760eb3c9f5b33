"""Lists and tuples in the place of arrays, functions that return a container of one, and pullbacks in graphs."""

import numpy as np
import pytest

import pyop
from pyop import NoRule

X = np.array([0.4, -1.2, 0.7])
LEFT = [1.0, 2.0, -0.5]

PROGRAMS = {
    # a plain list on either side
    "list * v": lambda v: LEFT * v,
    "tuple - v": lambda v: tuple(LEFT) - v,
    "list / v": lambda v: LEFT / v,
    "v ** list": lambda v: np.abs(v) ** LEFT,
    "list ** v": lambda v: [1.0, 2.0, 0.5] ** v,
    "hypot of a list": lambda v: np.hypot(LEFT, v),
    "maximum of a nested list": lambda v: np.maximum([LEFT, [0.0, 0.1, 0.2]], v),
    "list @ v": lambda v: LEFT @ v,
    "dot of a nested list": lambda v: np.dot([LEFT, LEFT], v),
    "einsum of a list": lambda v: np.einsum("i,i->i", LEFT, v),
    "where of lists": lambda v: np.where([True, False, True], v, LEFT),
    # Tensors and Values inside of one
    "hypot of elements": lambda v: np.hypot([v[0], 2.0, v[1]], v),
    "elements to the power of v": lambda v: np.power([np.exp(v[0]), 2.0, np.exp(v[2])], v),
    "append of elements": lambda v: np.append([v[0], v[1], v[2]], v**2),
    "append to elements": lambda v: np.append(v, [v[0] ** 2, 1.0]),
    "append of a number": lambda v: np.append(v, v[0] ** 2),
    "dot of rows": lambda v: np.dot([v, v**2], v),
    "interp in elements": lambda v: np.interp(v, [-2.0, v[0] * v[0], 2.0], [v[0], 2.0, v[1]]),
    "outer of elements": lambda v: np.multiply.outer([v[0], 2.0], v),
    "kron of elements": lambda v: np.kron([v[0], 1.0], v),
    "cross of elements": lambda v: np.cross([v[0], v[1], 1.0], v),
    "select": lambda v: np.select([v > 0.5, v > 0], [[v[0], 2.0, v[1]], v**2], v[2]),
    "choose": lambda v: np.choose([0, 1, 0], [[v[0], v[1], 0.0], v**3]),
    "linspace": lambda v: np.linspace([v[0], 0.0], v[1:], 4),
    "average by elements": lambda v: np.average(v**2, weights=[np.exp(v[0]), 1.0, 2.0]),
    "trapezoid over elements": lambda v: np.trapezoid(v, [0.0, v[0] ** 2, 3.0]),
    "solve for elements": lambda v: np.linalg.solve(np.eye(3) + np.multiply.outer(v, v), [v[0], 1.0, 2.0]),
    # sequences of arrays
    "concatenate with a list": lambda v: np.concatenate([LEFT, v, [v[0] ** 2, 1.0]]),
    "stack of lists": lambda v: np.stack([v, [v[1], v[0] ** 2, 1.0], LEFT]),
    "vstack of one array": lambda v: np.vstack(np.multiply.outer(v, v)),
    "hstack of one array": lambda v: np.hstack(np.multiply.outer(v, v)),
    "column_stack of one array": lambda v: np.column_stack(np.multiply.outer(v, v)),
    "dstack of one array": lambda v: np.dstack(np.multiply.outer(v, v)),
    "stack of one array": lambda v: np.stack(np.multiply.outer(v, v), axis=1),
    "concatenate of one array": lambda v: np.concatenate(np.multiply.outer(v, v)),
    "mean of a stack": lambda v: np.mean(np.stack([v[0], v[1] ** 2])),
    "multi_dot": lambda v: np.linalg.multi_dot([[v, LEFT], np.multiply.outer(v, v), v]),
    # einsum by lists of axes
    "einsum, sublists": lambda v: np.einsum(v, [0], np.multiply.outer(v, LEFT), [0, 1], v**2, [1], [1, 0]),
    "einsum, implicit": lambda v: np.einsum(np.multiply.outer(v, LEFT), [3, 1], v, [3]),
    "einsum, ellipsis": lambda v: np.einsum(np.multiply.outer(v, LEFT), [..., 0], v, [0], [...]),
    "einsum, diagonal beside an ellipsis": lambda v: np.einsum(
        "...ii,i->...", np.multiply.outer(np.stack([v, v**2]), LEFT), v
    ),
    "einsum, sum beside an ellipsis": lambda v: np.einsum("...j,k->...", np.multiply.outer(v, v), v**2),
    # a container of one
    "split into one": lambda v: np.split(v, 1)[0] ** 2,
    "array_split into one": lambda v: np.array_split(v, 1)[0] ** 2,
    "vsplit into one": lambda v: np.vsplit(v[:, None], 1)[0] ** 2,
    "unstack of one": lambda v: np.unstack(v[None])[0] ** 2,
    "broadcast_arrays of one": lambda v: np.broadcast_arrays(v)[0] ** 2,
    "meshgrid of one": lambda v: np.meshgrid(v)[0] ** 2,
    "split of elements": lambda v: np.split(np.stack([v[0], v[1] * v[2]]), 1)[0] ** 2,
}


def slopes(f, x):
    return np.array([(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(x.size)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_lists(name):
    program = PROGRAMS[name]
    f = lambda v: np.sum(np.sin(program(v)) * np.cos(np.arange(np.size(program(X)))).reshape(np.shape(program(X))))
    want = slopes(f, X)
    assert np.abs(want).max() > 1e-3
    forward = lambda v: np.stack([pyop.jvp(f, (v,), (e,))[1] for e in np.eye(3)])
    second = lambda v: pyop.jvp(pyop.grad(f), (v,), (np.ones(3),))[1]
    for way in (pyop.grad(f), forward):
        np.testing.assert_allclose(way(X), want, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(pyop.compile(way)(X), want, rtol=1e-6, atol=1e-8)
    expected = slopes(lambda t: pyop.grad(f)(X + t[0]), np.zeros(1))[0]
    np.testing.assert_allclose(second(X), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(pyop.compile(second)(X), expected, rtol=1e-5, atol=1e-7)


def test_lists_for_ops():
    @pyop.op("float64[n], float64[n] -> float64[n]")
    def times(x, y):
        return x * y

    times.vjp(lambda ct, x, y: (ct * y, ct * x))
    times.jvp(lambda tx, ty, x, y: tx * y + x * ty)
    plain, mixed = lambda z: np.sum(times(LEFT, z)), lambda z: np.sum(times([z[0], 2.0, z[1]], z))
    np.testing.assert_allclose(pyop.grad(plain)(X), LEFT)
    np.testing.assert_allclose(pyop.compile(pyop.grad(plain))(X), LEFT)
    np.testing.assert_allclose(pyop.grad(mixed)(X), slopes(mixed, X), rtol=1e-8)
    np.testing.assert_allclose(pyop.jvp(mixed, (X,), (X,))[1], slopes(mixed, X) @ X, rtol=1e-8)


def test_a_pullback_is_called_while_a_graph_is_built():
    _, pull = pyop.vjp(lambda x, y: np.sin(x) * x[0] * y, X, X + 2)
    f = lambda ct: np.sum(pull(ct)[0] ** 2 * pull(2 * ct)[1])
    seed = np.array([1.0, -0.3, 0.6])
    np.testing.assert_array_equal(pyop.compile(lambda ct: pull(ct)[1])(seed), pull(seed)[1])
    want = slopes(f, seed)
    np.testing.assert_allclose(pyop.compile(pyop.grad(f))(seed), want, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(pyop.compile(lambda c: pyop.jvp(f, (c,), (c,))[1])(seed), want @ seed, rtol=1e-7)
    np.testing.assert_allclose(pyop.compile(pyop.hessian(f))(seed), pyop.hessian(f)(seed), rtol=1e-7, atol=1e-9)
    rows = pyop.vmap(lambda c: pull(c)[0])(np.eye(3))
    np.testing.assert_array_equal(rows, [pull(e)[0] for e in np.eye(3)])


def test_a_pullback_of_tensors_in_a_graph_is_an_error():
    _, pull = pyop.vjp(np.sin, pyop.Tensor(X, requires_grad=True))
    with pytest.raises(TypeError, match=r"call pyop.vjp inside of the function that is compiled"):
        pyop.compile(lambda ct: pull(ct)[0])(X)


@pytest.mark.parametrize("wrap", [lambda f: f, pyop.compile])
def test_functions_without_a_rule_say_what_to_write(wrap):
    def square(x):
        return x**2

    def called(z):
        return np.sum(pyop.numpy_function(square, [z], [np.float64])[0])

    with pytest.raises(NoRule, match=r"function 'square'.*pyop.defvjp\(square, ...\).*f = pyop.op\(square"):
        wrap(pyop.grad(called))(X)
    named = pyop.op(square, "float64[n] -> float64[n]")
    with pytest.raises(NoRule, match=r"op 'square'.*@square.vjp"):
        wrap(pyop.grad(lambda z: np.sum(named(z))))(X)
    pyop.defvjp(square, lambda ct, ans, x: ct * 2 * x)
    np.testing.assert_allclose(wrap(pyop.grad(called))(X), 2 * X)
    import scipy.special as sp

    with pytest.raises(NoRule, match=r'scipy.special.jv .* argument 0.*grad="fd"'):
        wrap(pyop.grad(lambda z: np.sum(sp.jv(z, 1.0))))(X)


def test_objects_are_no_zero_gradient():
    twice = np.frompyfunc(lambda x: x * 2.0, 1, 1)
    with pytest.raises(NoRule, match="defvjp"):
        pyop.grad(lambda z: np.sum(twice(z)))(X)
    pyop.defvjp(twice, lambda ct, ans, x: ct * 2.0)
    with pytest.raises(NoRule, match="array of objects"):
        pyop.grad(lambda z: np.sum(twice(z)))(X)
    np.testing.assert_allclose(pyop.compile(pyop.grad(lambda z: np.sum(twice(z))))(X), [2.0] * 3)


def test_differentiated_by_arrays_while_compiling():
    """Tangents and cotangents that are arrays, beside constants that are Values by then."""
    order = np.array([2, 0, 0])
    f = lambda x: np.repeat(x, order)
    along = np.array([1.0, 5.0, 7.0])
    np.testing.assert_array_equal(pyop.compile(lambda x: pyop.jvp(f, (x,), (along,))[1])(X), [1.0, 1.0])
    back = pyop.compile(lambda x: pyop.vjp(lambda z: z[order] * z, x)[1](along)[0])
    np.testing.assert_allclose(back(X), pyop.vjp(lambda z: z[order] * z, X)[1](along)[0])
