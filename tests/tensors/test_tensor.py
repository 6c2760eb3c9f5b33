"""Tensor: an array with a memory."""

import copy
import operator
import pickle
import weakref
from fractions import Fraction

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import Ident, leaf, numbers


def test_making():
    a = np.arange(3.0)
    t = pyop.Tensor(a)
    assert t.numpy() is a
    assert pyop.Tensor([1, 2]).dtype == int
    assert pyop.Tensor([1, 2], dtype=np.float32, requires_grad=True).requires_grad
    with pytest.raises(TypeError, match=r"floating-point.*int64"):
        pyop.Tensor(np.arange(3), requires_grad=True)
    alias = pyop.Tensor(t)
    assert alias is not t
    assert np.shares_memory(alias.numpy(), a)
    assert repr(leaf(1.0)) == "Tensor([1.], requires_grad=True)"
    assert "grad_fn=<IdentBackward>" in repr(Ident.apply(leaf(1.0)))
    assert (t.shape, t.dtype, t.ndim, t.size, len(t), t.nbytes) == ((3,), float, 1, 3, 3, 24)
    weakref.ref(t)
    assert hash(t) != hash(alias)


def test_grad_is_checked():
    x = leaf(1.0, 2.0)
    x.grad = np.ones(2)
    assert numbers(x.grad) == [1, 1]
    x.grad = None
    for wrong in (np.ones(3), np.ones(2, np.float32)):
        with pytest.raises(ValueError, match="cannot be"):
            x.grad = wrong
    with pytest.raises(ValueError, match="own gradient"):
        x.grad = x


def test_requires_grad():
    t = pyop.Tensor(np.ones(2))
    assert t.requires_grad_() is t
    assert t.requires_grad
    assert t.requires_grad_(False).requires_grad is False
    with pytest.raises(RuntimeError, match="leaf"):
        Ident.apply(leaf(1.0)).requires_grad = False
    with pytest.raises(TypeError, match="int64"):
        pyop.Tensor(np.arange(2)).requires_grad = True
    y = Ident.apply(leaf(1.0))
    assert not y.is_leaf
    assert y.detach().is_leaf


def unknown_function(x):
    return x * 1.0


def test_a_history_is_not_lost_without_a_word():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match=r"history would be lost.*x\.numpy\(\)"):
        np.asarray(x)
    with pyop.no_grad():
        assert np.asarray(x).tolist() == [1, 2]
    assert np.asarray(pyop.Tensor(np.ones(2)), dtype=np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="unknown_function has no gradient rule"):
        x.__array_function__(unknown_function, (pyop.Tensor,), (x,), {})


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]


@pytest.mark.parametrize("op", BINARY)
def test_operators_are_recorded(op):
    a, b = np.array([1.5, 2.0]), np.array([3.0, 0.5])
    assert autograd.gradcheck(op, (leaf(1.5, 2.0), leaf(3.0, 0.5)))
    assert autograd.gradgradcheck(op, (leaf(1.5, 2.0), leaf(3.0, 0.5)))
    assert autograd.gradcheck(lambda x: op(x, b), (leaf(1.5, 2.0),))
    assert autograd.gradcheck(lambda x: op(a, x), (leaf(3.0, 0.5),))
    assert autograd.gradcheck(lambda x: op(2.0, x), (leaf(3.0, 0.5),))
    plain = op(pyop.Tensor(a), pyop.Tensor(b))
    assert type(plain) is pyop.Tensor
    assert np.array_equal(plain.numpy(), op(a, b))
    assert not plain.requires_grad


def test_operators_that_need_no_recording():
    t = pyop.Tensor(np.array([3, 5]))
    assert numbers(divmod(t, 2)[0]) == [1, 2]
    for op in (operator.mod, operator.floordiv, operator.and_, operator.or_, operator.xor, operator.lshift):
        assert numbers(op(t, 2)) == op(np.array([3, 5]), 2).tolist()
    assert numbers(~t) == [-4, -6]
    assert numbers(-t) == [-3, -5]
    assert numbers(abs(t)) == numbers(+t) == [3, 5]
    assert numbers(t == 3) == [True, False]
    assert numbers(leaf(1.0, 2.0) > 1.5) == [False, True]
    assert not (leaf(1.0) > 0).requires_grad
    assert float(leaf(2.5).detach()[0]) == 2.5
    assert int(pyop.Tensor(np.array(3))) == range(9)[pyop.Tensor(np.array(3))] == 3
    assert bool(pyop.Tensor(np.array(1)))
    with pytest.raises(TypeError):
        t + object()


def test_functions_are_recorded_with_scalars_and_broadcasting():
    x = leaf(1.0, 2.0)
    w = leaf(0.5)
    y = np.exp(w) * np.sin(x) + 1
    assert y.requires_grad
    assert y.grad_fn.name() == "AddBackward"
    assert autograd.gradcheck(lambda x, w: np.sum(np.exp(w) * np.sin(x) / 2.0), (x, w))
    assert autograd.gradgradcheck(lambda x, w: np.sum(np.exp(w) * np.sin(x) / 2.0), (x, w))
    with pyop.no_grad():
        assert not np.sin(x).requires_grad


def test_indexing_iterating_and_assigning():
    x = leaf(1.0, 2.0, 3.0)
    y = x[1] * 2 + x[np.array([0, 0])].sum() + x[::2].sum()
    y.backward()
    assert numbers(x.grad) == [3, 2, 1]
    assert [float(v) for v in pyop.Tensor(np.arange(2.0))] == [0, 1]
    with pytest.raises(TypeError, match="iteration"):
        iter(pyop.Tensor(np.array(1.0)))
    with pytest.raises(RuntimeError, match="in place"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="deleted"):
        del x[0]
    t = pyop.Tensor(np.zeros(2))
    with pytest.raises(RuntimeError, match="in place"):
        t[0] = x[0]
    t[0] = pyop.Tensor(np.array(7.0))
    assert numbers(t) == [7, 0]
    assert t._version == 1
    with pyop.no_grad():
        x[0] = 5.0
    assert x._version == 1


def test_out_is_a_change_in_place():
    t = pyop.Tensor(np.zeros(2))
    assert np.add(pyop.Tensor(np.ones(2)), 1.0, out=t) is t
    assert numbers(t) == [2, 2]
    assert t._version == 1
    with pytest.raises(TypeError, match="not recorded"):
        np.add(leaf(1.0, 2.0), 1.0, out=t)
    np.add.at(t, [0], 1.0)
    assert numbers(t) == [3, 2]
    assert t._version == 2


def test_methods():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    assert autograd.gradcheck(lambda x: x.reshape(2, 2).T.sum(axis=0).mean() * x.max(), (x,))
    assert x.astype(np.float32).dtype == np.float32
    assert autograd.gradcheck(lambda x: x.copy() * x.clone(), (x,))
    assert x.detach().item(2) == 3
    assert x.detach().tolist() == [1, 2, 3, 4]
    assert x.astype(float, copy=False) is x
    assert not x.astype(int).requires_grad
    z = leaf(1 + 2j, 3 - 1j, dtype=complex)
    assert autograd.gradcheck(lambda z: z.conj() * z.real + z.imag, (z,))
    with pytest.raises(TypeError, match="cast"):
        x.astype(int, casting="safe")


def test_detach_shares_memory_and_version():
    x = leaf(1.0, 2.0)
    d = x.detach()
    d._bump()
    assert x._version == 1
    assert np.shares_memory(d.numpy(), x.numpy())
    with pytest.raises(TypeError):
        x._mark_view(3)


def test_other_arrays_have_their_say():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

    assert pyop.Tensor(np.ones(1)) + Other() == "mine"


def test_objects_that_numpy_meets_element_by_element():
    class Unit:
        def __eq__(self, other):
            return other > 1.0

        __hash__ = None

        def __radd__(self, other):
            return other

    x = np.array([0.5, 1.0, 2.0])
    for other in (Fraction(1), Unit(), range(3), object()):
        for operation in (operator.eq, operator.ne):
            np.testing.assert_array_equal(operation(leaf(*x), other).numpy(), operation(x, other))
    gradient = pyop.grad(lambda x: np.sum(np.where(x == Fraction(1), x, 0.0)))
    np.testing.assert_array_equal(gradient(x), [0.0, 1.0, 0.0])
    with pytest.raises(TypeError, match=r"a Tensor and an object of type .*Unit.*element"):
        leaf(*x) + Unit()


# --- in place


def test_in_place_operators_write_where_nothing_is_recorded():
    w = leaf(1.0, 2.0)
    memory, alias = w.numpy(), w
    with autograd.no_grad():
        w -= 0.5 * pyop.Tensor([1.0, 1.0])
        w **= 2
        w @= np.eye(2)
    assert alias is w
    assert w.numpy() is memory
    assert numbers(w) == [0.25, 2.25]
    assert w._version == 3
    assert w.is_leaf
    assert w.requires_grad
    with autograd.no_grad(), pytest.raises(TypeError, match=r"same_kind|ufunc"):
        w &= 1


def test_in_place_operators_move_the_handle_while_recording():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"leaf that requires a gradient .* no_grad"):
        x += 1
    total = before = pyop.Tensor([0.0, 0.0])
    for k in range(3):
        total += x * k
    total **= 2
    assert total is before
    assert numbers(before) == [9, 36]
    total.sum().backward()
    assert numbers(x.grad) == [18, 36]


@pytest.mark.parametrize(
    "change",
    [
        lambda t, x: np.copyto(t, x),
        lambda t, x: np.put(t, [0], x[:1]),
        lambda t, x: np.add.at(t, [0], x[0]),
        lambda t, x: np.putmask(t, [True, False], x),
        lambda t, x: np.add(t, x, out=t),
        lambda t, x: t.__setitem__(0, x[0]),
    ],
)
def test_changes_in_place_are_counted_or_refused(change):
    t, x = pyop.Tensor(np.zeros(2)), leaf(1.0, 2.0)
    with pytest.raises((TypeError, RuntimeError), match=r"not recorded.*no_grad"):
        change(t, x)
    assert numbers(t) == [0, 0]
    change(t, x.detach())
    assert numbers(t)[0] == 1
    assert t._version == 1
    with pytest.raises((TypeError, RuntimeError), match="not recorded"):
        change(x, t)
    with pytest.raises(RuntimeError, match=r"sort\(\) changes"):
        x.sort()
    t.sort()
    assert t._version == 2


# --- copies, and other libraries


def test_pickles_and_copies_of_leaves():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.deepcopy({"x": [x, x]})["x"][1]):
        assert numbers(again) == [1, 2]
        assert again.requires_grad
        assert numbers(again.grad) == [3, 3]
        assert not np.shares_memory(again.numpy(), x.numpy())
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1]
    y = copy.copy(x)
    y.sum().backward()
    assert numbers(x.grad) == [4, 4]
    for how in (pickle.dumps, copy.deepcopy):
        with pytest.raises((TypeError, RuntimeError), match=r"history .* t\.detach"):
            how(x * 2)


def test_formats_numbers_and_exchange():
    x = leaf(1.0, 2.0)
    assert f"{x.detach().sum():.2f} {x}" == "3.00 Tensor([1., 2.], requires_grad=True)"
    assert complex(pyop.Tensor(1 + 2j)) == 1 + 2j
    assert [float(item) for item in reversed(x.detach())] == [2, 1]
    assert np.shares_memory(np.from_dlpack(x.detach()), x.numpy())
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(x)


def test_a_tensor_in_a_graph_is_a_constant():
    c, x = pyop.Tensor([1.0, 2.0]), leaf(1.0, 2.0)
    graph = pyop.trace(lambda v: (c * v - np.add(v, c), c**v, np.stack([c, v]), c < v, v @ c), "float64[2]")
    v = np.array([3.0, 1.0])
    found, expected = graph.compile()(v), (c.numpy() * v - (v + c.numpy()), c.numpy() ** v)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=False))
    assert np.array_equal(found[3], [True, False])
    for use in (lambda v: x * v, lambda v: np.multiply(v, x), lambda v: np.stack([x, v])):
        with pytest.raises(TypeError, match=r"cannot be part of a graph.*detach"):
            pyop.trace(use, "float64[2]")


@pytest.mark.parametrize("given", [{1.0, 2.0}, {"a": 1.0}, (v for v in (1.0, 2.0)), None, object(), [1.0, None]])
def test_what_is_no_array_makes_no_tensor(given):
    with pytest.raises(TypeError, match=r"made of an array.* and not of"):
        pyop.Tensor(given)


def test_gradcheck_tells_how_far_it_is():
    def told_by(check, *args, **options):
        told = []
        assert check(*args, progress=lambda done, total: told.append((done, total)), **options)
        return told

    x, z = leaf(1.5, 2.0), autograd.Tensor(np.array([1j, 2.0]), requires_grad=True)
    assert told_by(autograd.gradcheck, lambda x: x * x, (x,)) == [(k, 4) for k in range(5)]
    # A complex element has two directions, as input and as output.
    assert told_by(autograd.gradcheck, lambda x, z: (x * 2, x * z), (x, z)) == [(k, 12) for k in range(13)]
    told = told_by(autograd.gradcheck, lambda x: x * x, (x,), check_forward_ad=True)
    assert told == [(k, 8) for k in range(9)]
    assert told_by(autograd.gradgradcheck, lambda x: x * x, (x,))[-1] == (6, 6)
    told = []
    wrong = pyop.op("float64[n] -> float64[n]", name="wrong")(lambda x: x * x)
    wrong.vjp(lambda ct, x: ct * x)
    with pytest.raises(autograd.GradcheckError):
        autograd.gradcheck(wrong, (x,), progress=lambda *at: told.append(at))
    assert told[0] == (0, 4)
    assert told[-1][0] <= 4
    with pytest.raises(TypeError, match="progress= takes"):
        autograd.gradcheck(lambda x: x, (x,), progress=3)
