"""Arrays that are not differentiated by, and are written into again before the backward pass."""

import re

import numpy as np
import pytest

import pyop

WANT = np.array([2.0, 4.0, 6.0])


def index_array(w, step):
    index = step(np.zeros(1, int))
    return sum((2 * (k + 1)) * w[index(k, k)].sum() for k in range(3))


def filled(buffer):
    """The buffer, filled anew at each use."""

    def use(k, value):
        buffer[...] = value
        return buffer

    return use


def one_hot(buffer):
    def use(k, _):
        buffer[...] = 0
        buffer[..., k] = 1
        return buffer

    return use


def outcome(run, *errors):
    """What comes back, or the text of a refusal."""
    try:
        return run()
    except errors as error:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])


PROGRAMS = {
    "an index": lambda w: index_array(w, filled),
    "a choice": lambda w, m=None: sum(
        (2 * (k + 1)) * np.where(use(k, 0), w, 0.0).sum() for use in [one_hot(np.zeros(3, bool))] for k in range(3)
    ),
    "where=": lambda w: sum(
        (2 * (k + 1)) * np.sum(w, where=use(k, 0)) for use in [one_hot(np.zeros(3, bool))] for k in range(3)
    ),
    "einsum": lambda w: sum(
        (2 * (k + 1)) * np.einsum("i,i", w, use(k, 0)) for use in [one_hot(np.zeros(3))] for k in range(3)
    ),
    "a factor": lambda w: sum(
        (2 * (k + 1)) * (w * use(k, 0)).sum() for use in [one_hot(np.zeros(3))] for k in range(3)
    ),
    "a strided factor": lambda w: sum(
        (2 * (k + 1)) * (w * use(k, 0)).sum() for use in [one_hot(np.zeros((3, 2))[:, 0])] for k in range(3)
    ),
    "a matrix": lambda w: sum((2 * (k + 1)) * (use(k, 0) @ w) for use in [one_hot(np.zeros(3))] for k in range(3)),
}
WAYS = {
    "reverse": pyop.grad,
    "forward": lambda f: pyop.jacobian(f, mode="forward"),
    "compiled": lambda f: pyop.compile(pyop.grad(f)),
    "twice": lambda f: lambda x: pyop.hvp(lambda w: 0.5 * f(w) ** 2, (x,), (np.array([1.0, 0.0, 0.0]),)) / 2,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_buffer_that_is_filled_again_is_no_constant(program, way):
    got = outcome(lambda: WAYS[way](PROGRAMS[program])(np.array([0.5, -1.0, 2.0])), RuntimeError, TypeError)
    if isinstance(got, str):
        assert re.search("copy|argument|pyop.op", got)
    else:
        np.testing.assert_allclose(got, WANT)


@pytest.mark.parametrize("name", ["index", "choice", "where=", "einsum"])
def test_small_ones_are_right(name):
    program = next(PROGRAMS[key] for key in PROGRAMS if name in key)
    np.testing.assert_allclose(pyop.grad(program)(np.ones(3)), WANT)


@pytest.mark.parametrize("size", [1000, 20000])
@pytest.mark.parametrize("use", [lambda w, b: (w * b).sum(), lambda w, b: np.einsum("i,i", w, b)])
def test_large_ones_are_noticed(size, use):
    def f(w):
        buffer, total = np.empty(size), 0.0
        for k in range(3):
            buffer[:] = k
            total = total + use(w, buffer)
        return total

    got = outcome(lambda: pyop.grad(f)(np.ones(size)), RuntimeError)
    if isinstance(got, str):
        assert "copy" in got
    else:
        np.testing.assert_allclose(got, 3.0)


@pyop.op("float64[n] -> float64[n]")
def doubled(x):
    return x * 2


@doubled.vjp
def _(ct, x):
    ct *= 2
    return ct


class Doubled(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        g *= 2
        return g


@pytest.mark.parametrize("way", [lambda f: f, pyop.compile])
@pytest.mark.parametrize("double", [doubled, Doubled.apply])
def test_a_rule_does_not_write_into_the_cotangent_of_others(double, way):
    def f(a):
        y = a * 1.0
        return np.sum(double(y) + y)

    got = outcome(lambda: way(pyop.grad(f))(np.ones(3)), ValueError)
    if isinstance(got, str):
        assert "read-only" in got
        assert "makes a new array" in got
    else:
        np.testing.assert_allclose(got, 3.0)


class Handed(pyop.Function):
    """Hands the gradient on as it has come."""

    @staticmethod
    def forward(ctx, x):
        return x.copy()

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_seed_that_is_handed_on_stays_the_callers_own(length):
    seed = np.ones(3)
    y = Doubled.apply(pyop.Tensor(np.ones(3), requires_grad=True))
    for _ in range(length):
        y = Handed.apply(y)
    with pytest.raises(ValueError, match="read-only") as caught:
        y.backward(seed)
    assert "makes a new array" in str(caught.value.__notes__)
    np.testing.assert_array_equal(seed, 1.0)


# A few elements are written between forward and backward. What comes back is right, or an error that says to copy.

BUFFER = np.ones(0)


class Keeps(pyop.Function):
    kept = None

    @staticmethod
    def forward(ctx, x):
        Keeps.kept = x
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g


class ItsBuffer(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        BUFFER[...] = x
        return BUFFER

    @staticmethod
    def backward(ctx, g):
        return g


class WritesSaved(pyop.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        x *= 2
        return x * g


def numbers_of(y):
    return y.numpy() if type(y) is pyop.Tensor else y


def by_steps(x, use):
    total, buffer = 0.0, np.ones(x.size)
    for k in range(3):
        buffer[k] = k + 5
        total = total + np.sum(use(x, buffer))
    return total


def then_write(y, total, array=None):
    array = numbers_of(y) if array is None else array
    array[3] = 9
    return total


def a_view_is_given_away(x):
    y = x * 2
    v = y[1:]
    return then_write(v, np.sum(y * y))


def the_base_is_given_away(x):
    y = x * 2
    v = y[1:]
    return then_write(y.detach() if type(y) is pyop.Tensor else y, np.sum(v * v))


def kept_by_a_function(x):
    y = x * 2
    total = np.sum(y * y)
    return then_write(Keeps.apply(y), total, Keeps.kept)


def kept_by_a_function_and_saved_later(x):
    y = x * 2
    z = Keeps.apply(y)
    return then_write(z, np.sum(y * y), Keeps.kept)


def broadcast(x):
    buffer = np.full(x.size, 2.0)
    return then_write(None, np.sum(x * np.broadcast_to(buffer, (3, x.size))), buffer)


def saved_by_others(x):
    y = x * 1.5
    return np.sum(y * y) + np.sum(WritesSaved.apply(y))


def columns(x):
    table = np.full((x.size, 2), 2.0)
    return then_write(None, np.sum(x * table[:, 0]), table[:, 0])


def indices(x):
    index = np.arange(x.size)
    return then_write(None, np.sum(x[index] * x), index)


FEW = {
    "a factor": (lambda x: by_steps(x, lambda x, b: x * b), None),
    "a bound": (lambda x: by_steps(x, lambda x, b: x + np.maximum(0 * x, b)), 3.0),
    "numpy()": (lambda x: (lambda y: then_write(y, np.sum(y)))(np.exp(x)), np.exp),
    "of a view": (a_view_is_given_away, None),
    "of what a view shows": (the_base_is_given_away, None),
    "kept by a Function": (kept_by_a_function, None),
    "kept by a Function, saved later": (kept_by_a_function_and_saved_later, None),
    "a Function's buffer": (lambda x: np.sum(ItsBuffer.apply(x) ** 2) + np.sum(ItsBuffer.apply(2 * x) ** 2), None),
    "broadcast": (broadcast, None),
    "saved by others": (saved_by_others, lambda x: 9 * x),
    "columns": (columns, None),
    "indices": (indices, lambda x: 2 * x),
}


@pytest.mark.parametrize("size", [40, 1000, 100_000])
@pytest.mark.parametrize("program", FEW)
def test_writes_of_a_few_elements_are_noticed(program, size):
    global BUFFER
    BUFFER = np.empty(size)
    x = np.linspace(1.0, 2.0, size)
    f, want = FEW[program]
    got = outcome(lambda: pyop.grad(f)(x), RuntimeError)
    if isinstance(got, str):
        assert "copy" in got
    else:
        assert want is not None, "there is no right answer"
        np.testing.assert_allclose(got, want(x) if callable(want) else want)


DERIVATIVES = {
    "grad": lambda f, x: pyop.grad(f)(x),
    "vjp": lambda f, x: pyop.vjp(f, x)[1](np.array(1.0)),
    "jvp": lambda f, x: pyop.jvp(f, (x,), (x,)),
    "jacobian": lambda f, x: pyop.jacobian(lambda x: f(x) * np.ones(2))(x),
    "hvp": lambda f, x: pyop.hvp(f, (x,), (x,)),
}


@pytest.mark.parametrize("size", [40, 1000, 100_000])
@pytest.mark.parametrize("way", DERIVATIVES)
def test_an_argument_is_written_by_another_array(way, size):
    x = np.linspace(1.0, 2.0, size)

    def f(y):
        return then_write(None, np.sum(y * y), x)

    with pytest.raises((RuntimeError, TypeError), match="copy"):
        DERIVATIVES[way](f, x)


@pytest.mark.parametrize("size", [40, 1000, 100_000])
def test_what_vjp_was_given_and_has_returned(size):
    x = np.linspace(1.0, 2.0, size)
    for written in (0, 1):
        y, pull = pyop.vjp(np.exp, x)
        (x, y)[written][3] = 0
        with pytest.raises(RuntimeError, match="copy"):
            pull(np.ones(size))


@pytest.mark.parametrize("size", [40, 1000, 100_000])
def test_a_training_loop_that_writes_through_numpy(size):
    w = pyop.Tensor(np.ones(size), requires_grad=True)
    kept = []
    for _ in range(4):
        loss = np.sum((w - 2) * (w - 2))
        kept.append(np.sum(w * w))  # a record that nobody goes back through
        loss.backward()
        w.numpy()[...] -= 0.1 * w.grad.numpy()
        w.grad = None
    np.testing.assert_allclose(w.numpy(), 2 - 0.8**4)
    with pytest.raises(RuntimeError, match="copy"):
        kept[0].backward()


def test_what_is_given_away_and_not_written_is_no_error():
    def f(x):
        y = x * 2
        v = y[1:]
        numbers_of(v), numbers_of(y)
        return np.sum(y * y) + np.sum(v * v)

    np.testing.assert_allclose(pyop.grad(f)(np.ones(1000)), [8] + [16] * 999)
