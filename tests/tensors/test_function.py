"""Function.apply: arguments, results, forms, and what is checked."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import pyop
from pyop import autograd

from .ops import Ident, Mul, leaf, make, numbers


def test_arrays_in_arrays_out():
    x = np.ones(2)
    y = Mul.apply(x, x)
    assert type(y) is np.ndarray
    assert type(make(lambda ctx: np.ones(2)).apply()) is pyop.Tensor


def test_a_plain_array_beside_a_tensor_is_a_constant():
    x = leaf(1.0, 2.0)
    Mul.apply(x, np.array([3.0, 4.0])).backward(np.ones(2))  # backward returns a gradient for it, which is ignored
    assert numbers(x.grad) == [3, 4]


def test_the_split_form_gets_defaults_filled_in():
    seen = []

    def setup(ctx, inputs, output):
        seen.append((len(inputs), inputs[1:], type(output)))
        ctx.k = inputs[1]

    op = make(lambda x, k=5.0, m=None: x * k, lambda ctx, g: (g * ctx.k, None, None), setup_context=setup)
    x = leaf(2.0)
    op.apply(x).backward()
    assert seen == [(3, (5.0, None), np.ndarray)]
    assert numbers(x.grad) == [5]


def test_keywords_find_their_places():
    op = make(lambda ctx, x, k=2.0, *, scale=1.0: x * k * scale, lambda ctx, g: (g, None))
    assert numbers(op.apply(leaf(1.0), k=3.0)) == [3]
    assert numbers(op.apply(k=3.0, x=leaf(1.0), scale=10.0)) == [30]
    with pytest.raises(TypeError, match="unexpected keyword"):
        op.apply(leaf(1.0), nonsense=1)
    with pytest.raises(TypeError, match="multiple values"):
        op.apply(leaf(1.0), x=leaf(1.0))
    with pytest.raises(TypeError, match="keyword-only"):
        op.apply(leaf(1.0), scale=leaf(1.0))
    x = leaf(2.0)
    y = op.apply(x=x)
    y.backward()
    assert numbers(x.grad) == [1]


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Record:
    a: object
    b: object


@dataclasses.dataclass(slots=True)
class Slots:
    a: object
    b: object


def deep(x):
    for _ in range(100):
        x = [x]
    return x


@pytest.mark.parametrize(
    ("build", "take"),
    [
        (Slots, lambda t: (t.a, t.b)),
        (lambda x, y: deep(Slots(x, [y])), lambda t: (eval("t" + "[0]" * 100).a, eval("t" + "[0]" * 100).b[0])),
        (lambda x, y: [x, y], lambda t: (t[0], t[1])),
        (lambda x, y: (x, y), lambda t: (t[0], t[1])),
        (lambda x, y: {"a": x, "b": y}, lambda t: (t["a"], t["b"])),
        (Pair, lambda t: (t.a, t.b)),
        (Record, lambda t: (t.a, t.b)),
        (lambda x, y: {"deep": [(x, 1), {"y": y}]}, lambda t: (t["deep"][0][0], t["deep"][1]["y"])),
    ],
)
def test_containers_of_tensors(build, take):
    def forward(ctx, tree, k):
        ctx.needs = ctx.needs_input_grad
        a, b = take(tree)
        assert type(a) is type(b) is np.ndarray
        ctx.save_for_backward(a, b)
        ctx.tree = tree
        return a * b * k

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        if isinstance(ctx.tree, dict) and "deep" in ctx.tree:
            return {"deep": [(g * b * 2, None), {"y": g * a * 2}]}, None
        return build(g * b * 2, g * a * 2), None

    op = make(forward, backward)
    x, y = leaf(3.0), leaf(5.0)
    z = op.apply(build(x, y), 2.0)
    assert z.grad_fn.needs == (True, False)
    z.backward()
    assert numbers(x.grad) == [10]
    assert numbers(y.grad) == [6]


def test_containers_that_are_not_looked_into():
    """The history of what stands in them would be lost."""

    class Items(list):
        pass

    op = make(lambda ctx, c: c[0] * 2, lambda ctx, g: [g * 2])
    with pytest.raises(TypeError, match=r"stands in a Items.*pass list\(x\)"):
        op.apply(Items([leaf(1.0)]))
    for held in (Items, lambda xs: Slots(*xs, None)):
        with pytest.raises(TypeError, match=r"stands in a (Items|Slots), and in a graph only tuples"):
            pyop.trace(lambda x, held=held: op.apply(held([x])), "float64[2]")


def test_masked_gradients_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    x = pyop.Tensor(np.ones(2), requires_grad=True)
    with pytest.raises(TypeError, match="masked"):
        (x * 2).backward(masked)
    with pytest.raises(TypeError, match="masked"):
        make(lambda ctx, a: a * 2, lambda ctx, g: masked).apply(x).backward(np.ones(2))


def test_a_container_of_gradients_of_another_form():
    op = make(lambda ctx, pair: pair[0] * pair[1], lambda ctx, g: {"a": g})
    with pytest.raises(RuntimeError, match="position 1"):
        op.apply((leaf(1.0), leaf(2.0))).backward()


def test_a_list_of_gradients_is_as_good_as_a_tuple():
    x, y = leaf(2.0), leaf(3.0)
    op = make(lambda ctx, a, b: a + b, lambda ctx, g: [g, 2 * g])
    op.apply(x, y).backward()
    assert (numbers(x.grad), numbers(y.grad)) == ([1], [2])


@pytest.mark.parametrize("result", [lambda x: [x * 2], lambda x: {"y": x * 2}, lambda x: (x, [x * 2])])
def test_arrays_in_a_list_or_dict_would_lose_their_gradients(result):
    with pytest.raises(TypeError, match="tuple"):
        make(lambda ctx, x: result(x)).apply(leaf(1.0))


def test_what_is_no_array_passes_through():
    y, text, number, nothing = make(lambda ctx, x: (x * 2, "s", 7, None), lambda ctx, g, *rest: g).apply(leaf(1.0))
    assert (numbers(y), text, number, nothing) == ([2], "s", 7, None)
    assert y.grad_fn.output_info[1:] == (None, None, None)


def test_numpy_scalars_are_arrays():
    x = leaf(1.0, 2.0)
    y = make(lambda ctx, x: x.sum(), lambda ctx, g: np.full(2, g)).apply(x)
    assert y.shape == ()
    y.backward()
    assert numbers(x.grad) == [1, 1]


def test_one_array_in_two_slots_gets_both_gradients():
    x = leaf(1.0)

    def forward(ctx, x):
        y = x * 1
        return y, y

    p, q = make(forward, lambda ctx, g, h: g + 10 * h).apply(x)
    autograd.backward([p, q], [np.array([1.0]), np.array([2.0])])
    assert numbers(x.grad) == [21]


def test_two_tensors_of_one_array_are_told_apart():
    """Saved arrays are recognised by identity: the constant must not stand for the variable."""
    x = leaf(3.0)
    constant = pyop.Tensor(x.numpy())
    y = Mul.apply(constant, x)
    (g,) = autograd.grad(y, [x], create_graph=True)
    assert numbers(g) == [3]
    z = Mul.apply(x, x.numpy())
    (g,) = autograd.grad(z, [x], create_graph=True)
    assert not g.requires_grad or numbers(autograd.grad(g, [x], allow_unused=True)[0]) in (None, [0])


def test_methods_are_found_once_and_wrong_forms_are_named():
    with pytest.raises(TypeError, match=r"call Ident\.apply"):
        Ident()
    both = make(lambda ctx, x: x * 1, lambda ctx, g: g, vjp=lambda ctx, g: g, name="Both")
    with pytest.raises(RuntimeError, match="Both"):
        both.apply(leaf(1.0)).backward()
    renamed = make(lambda ctx, x: x * 1, vjp=lambda ctx, g: 3 * g)
    x = leaf(1.0)
    renamed.apply(x).backward()
    assert numbers(x.grad) == [3]


def test_inheritance():
    class Base(pyop.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Derived(Base):
        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    Derived.apply(x).backward()
    assert numbers(x.grad) == [2]
    assert Derived.apply.name == "Derived"
    with pytest.raises(NotImplementedError, match="Base has no backward"):
        Base.apply(x).backward()


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (lambda g: (g,), RuntimeError, "Op.*expected 2, got 1"),
        (lambda g: (g, g, g), RuntimeError, "expected 2, got 3"),
        (lambda g: (g, "x"), RuntimeError, "position 2"),
        (lambda g: ("x", None), TypeError, "type str at position 1"),
        (lambda g: (1.0, None), TypeError, "type float at position 1"),
        (lambda g: (np.ones(3), None), RuntimeError, r"index 0.*\(3,\).*\(2,\)"),
        (lambda g: (np.array(1.0), None), RuntimeError, r"index 0.*\(\).*\(2,\)"),
        (lambda g: (g + 1j, None), RuntimeError, "complex128.*float64.*real"),
        (lambda g: (np.array(["a", "b"]), None), TypeError, "dtype"),
    ],
)
def test_wrong_gradients(returned, error, words):
    op = make(lambda ctx, x, k: x * 1, lambda ctx, g: returned(g))
    with pytest.raises(error, match=words):
        op.apply(leaf(1.0, 2.0), 3).backward(np.ones(2))


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_summed_over_what_was_broadcast_and_cast(create_graph):
    x = pyop.Tensor(np.ones((2, 1), np.float32), requires_grad=True)
    op = make(lambda ctx, x: np.broadcast_to(x, (5, 2, 3)).astype(float), lambda ctx, g: g)
    y = op.apply(x)
    y.backward(np.ones((5, 2, 3)), create_graph=create_graph)
    assert x.grad.dtype == np.float32
    assert numbers(x.grad) == [[15], [15]]


def test_real_gradients_of_complex_inputs_are_cast():
    z = leaf(1j, dtype=complex)
    make(lambda ctx, z: z.real.copy(), lambda ctx, g: g).apply(z).backward()
    assert z.grad.dtype == complex


def test_materialising():
    got = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    op = make(forward, lambda ctx, g, h: (got.append((g, h)), g)[1])
    y, _ = op.apply(leaf(1.0))
    y.backward()
    assert got[0][1] is None
    with pytest.raises(TypeError, match="True or False, not str"):
        make(lambda ctx, x: ctx.set_materialize_grads("no")).apply(leaf(1.0))


def test_marks_take_arrays_only():
    for method in ("mark_dirty", "mark_non_differentiable"):
        with pytest.raises(TypeError, match=rf"{method}\(\) takes arrays, but argument 0 is of type int"):
            make(lambda ctx, x, method=method: getattr(ctx, method)(3)).apply(leaf(1.0))


def test_integers_have_no_gradient():
    y, n = make(lambda ctx, x: (x * 2, np.arange(3)), lambda ctx, g, h: (h.dtype, g)[1]).apply(leaf(1.0))
    assert y.requires_grad
    assert not n.requires_grad


def test_methods_of_ctx_belong_into_the_call():
    ctx = Ident.apply(leaf(1.0)).grad_fn
    for method in ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable"):
        with pytest.raises(RuntimeError, match="the call is over"):
            getattr(ctx, method)(np.ones(1))


def test_what_a_node_knows():
    seen = []

    def forward(ctx, x, k, a):
        seen.append(ctx)
        ctx.save_for_backward(x, None)
        assert ctx.to_save[0] is x
        assert ctx.saved_tensors == ()
        return x * k, "text"

    op = make(forward, lambda ctx, *g: (None,) * 3)
    x = leaf(1.0, 2.0)
    y, _ = op.apply(x, 2.0, np.ones(3))
    node = y.grad_fn
    assert node is seen[0]
    assert node.name() == "OpBackward"
    assert node.function is op
    assert node.is_variable_input == (True, False, False)
    assert node.needs_input_grad == (True, False, False)
    assert node.input_info == ((np.dtype(float), (2,)),)
    assert node.output_info == ((np.dtype(float), (2,)), None)
    assert node.saved_tensors[0] is x
    assert node.to_save == ()
    assert node.next_functions[0][0].variable is x
    assert node.next_functions[0][0].name() == "AccumulateGrad"
    with pytest.raises(AttributeError):
        node.nothing
    node.something = 3
    assert node.something == 3
    with pytest.raises(TypeError):
        type(node)()


def test_needs_input_grad_says_what_the_run_wants():
    needs = []

    def backward(ctx, g):
        needs.append(ctx.needs_input_grad)
        return g if needs[-1][0] else None, g if needs[-1][1] else None

    op = make(lambda ctx, a, b: a + b, backward)
    a, b = leaf(1.0), leaf(2.0)
    autograd.grad(op.apply(a, b), [b])
    op.apply(a, b).backward()
    op.apply(a, b).backward(inputs=[a])
    assert needs == [(False, True), (True, True), (True, False)]
    assert (numbers(a.grad), numbers(b.grad)) == ([2], [1])


scaled_seen = []


class Scaled(pyop.Function):
    @staticmethod
    def forward(x, factor=2.0, shift=None):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor

    @staticmethod
    def jvp(ctx, t, factor, shift):
        scaled_seen.append((factor, shift))
        return t * ctx.factor

    @staticmethod
    def vmap(info, in_dims, x, factor, shift):
        scaled_seen.append((factor, shift, in_dims))
        return x * factor, in_dims[0]


def test_jvp_and_vmap_know_of_defaults_that_were_left_out():
    scaled_seen.clear()
    value, tangent = pyop.jvp(Scaled.apply, (np.ones(2),), (np.ones(2),))
    assert tangent.tolist() == value.tolist() == [2, 2]
    assert pyop.vmap(Scaled.apply)(np.ones((3, 2))).tolist() == [[2, 2]] * 3
    assert pyop.vmap(lambda x: Scaled.apply(x, shift=1))(np.ones((3, 2))).tolist() == [[2, 2]] * 3
    assert scaled_seen == [(None, None), (2.0, None, (0, None, None)), (2.0, 1, (0, None, None))]


def test_tensors_of_integers_have_no_tangents():
    seen = []

    class Take(pyop.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x[k]

        @staticmethod
        def jvp(ctx, t, k):
            seen.append(k)
            return t[ctx.k]

    k = pyop.Tensor(np.array([1, 0]))
    assert pyop.jvp(lambda x: Take.apply(x, k), (np.ones(2),), (np.arange(2.0),))[1].tolist() == [1, 0]
    assert seen == [None]
