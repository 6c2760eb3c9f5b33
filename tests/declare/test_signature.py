"""Signature: text there and back, what binds what, the encoding, and inference against concrete shapes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyop.declare.binding import Kind, Step
from pyop.declare.dims import Dim
from pyop.declare.signature import Signature
from pyop.declare.spec import Spec

S = Spec.parse


# --- text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("float64[n], float64[n] -> float64[]", None),
        ("f8[n],f8[n]->f8[],i4[n]", "float64[n], float64[n] -> float64[], int32[n]"),
        ("() -> float64[3]", None),
        (" -> f8[3]", "() -> float64[3]"),
        ("-> ()", None),
        ("float64[n] -> ()", None),
        ("_ -> _", None),
        ("T[*b,n] -> T[*b]", None),
        ("float64[n+1] -> float64[n]", None),
        ("float64[m*n], float64[n], float64[m] -> float64[n//2]", None),
        ("float64[n] -> float64[m!], int64[m], int64[m+1]", None),
        ("float64[...,n] -> float64[...]", None),
        ("(n,m),(m)->(n)", None),
        ("( n , m ) , ( m ) -> ( n )", "(n,m),(m)->(n)"),
        ("()->()", None),
        ("(),()->()", None),
        ("(3),(3)->(3)", None),
        ("(n?,k),(k,m?)->(n?,m?)", None),
        ("(n|1),(n|1)->(n),(k!)", None),
    ],
)
def test_text_there_and_back(text: str, canonical: str | None) -> None:
    signature = Signature.parse(text)
    assert str(signature) == (canonical or text)
    assert signature.gufunc == (")->(" in str(signature))
    for again in (Signature.parse(str(signature)), pickle.loads(pickle.dumps(signature)), Signature.make(text)):
        assert again == signature
        assert hash(again) == hash(signature)
        assert again.encode() == signature.encode()


def test_parts() -> None:
    s = Signature.parse("f8[n], i4 -> f8[n]")
    assert s.inputs == (S("f8[n]"), S("i4"))
    assert s.outputs == S("f8[n]")
    assert Signature.parse("f8 -> f8, f8").outputs == (S("f8"), S("f8"))
    assert Signature.parse("f8 -> ()").outputs == ()
    assert Signature.parse("() -> f8[]").inputs == ()
    gufunc = Signature.parse("(n),(m)->(n)", dtype=["f8", "T", "T"])
    assert gufunc.inputs == (S("f8[n]"), S("T[m]"))
    assert gufunc.outputs == S("T[n]")
    with pytest.raises(AttributeError, match="immutable"):
        s.outputs = ()


# The text, the character that the caret must be under, and what the message must say.
WRONG = [
    ("", 0, "expected a dtype"),
    ("f8[n]", 5, "outputs="),
    ("f8[n] f8[n] -> f8", 6, "expected ',' or '->'"),
    ("f8[n],->f8[]", 6, "expected a dtype"),
    ("f8[n] -> f8[m]", 12, "write 'm!'"),
    ("f8[n] -> f8[2*m+n]", 12, "write 'm!'"),
    ("f8[n] -> f8[n!]", 12, "without '!'"),
    ("f8[n!] -> f8[]", 3, "without '!'"),
    ("f8[n] -> T[n]", 9, "type variable 'T'"),
    ("f8[n] -> f8[*b]", 12, "no input binds '*b'"),
    ("f8[n, n*m] -> f8[]", 6, "does not determine 'm'"),
    ("f8[n//2] -> f8[]", 3, "does not determine 'n'"),
    ("f8[m+n], f8[n] -> f8[]", 3, "does not determine 'm'"),
    ("f8 -> f8[k*k], f8[k!]", 9, "no earlier output has alone"),
    ("f8[n] -> (n)", 10, "gufunc declaration"),
    ("f8[n], (n) -> f8", 7, "gufunc declaration"),
    ("(n) -> f8[n]", 7, "every part of a gufunc"),
    ("(n),(m)->", 9, "every part of a gufunc"),
    ("(n+1)->()", 2, "names and numbers"),
    ("(n,)->()", 3, "a name or a number"),
    ("(n)->(m)", 6, "write 'm!'"),
    ("(n)->(m?)", 6, "no input binds 'm'"),
    ("(n)->(n|1)", 6, "inputs only"),
    ("(n!)->()", 1, "outputs only"),
    ("(n|2)->()", 2, "'|1'"),
    ("(3?)->()", 2, "only a named size"),
    ("(n)->()->()", 7, "or the end"),
    ("() -> f8 f8", 9, "or the end"),
]


@pytest.mark.parametrize(("text", "position", "message"), WRONG)
def test_wrong_text_points_at_the_character(text: str, position: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        Signature.parse(text)
    first, shown, caret = str(error.value).split("\n")
    assert message in first
    assert shown == "    " + text
    assert caret == " " * (4 + position) + "^"


# --- other spellings


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class State:
    x: Any
    v: Any


def test_trees_of_outputs() -> None:
    make = Signature.make
    assert make(outputs={"a": "f8[n]", "b": [np.int32, ("f4", (3, None))]}).outputs == {
        "a": S("f8[n]"),
        "b": [S("i4"), S("f4[3,_]")],
    }
    assert make(outputs=Pair("f8", np.zeros(2))).outputs == Pair(S("f8"), S("f8[2]"))
    assert make(outputs=State("f8", Spec())).outputs == State(S("f8"), Spec())
    assert str(make(outputs=State("f8", ("i4",)))) == "... -> State(x=float64, v=(int32,))"
    assert make(outputs="f8[n], i4").outputs == (S("f8[n]"), S("i4"))
    assert make(outputs=("f8", ())).outputs == S("f8[]")
    assert make(outputs=("f8", ("i4", "i4"))).outputs == (S("f8"), (S("i4"), S("i4")))
    assert make(outputs=("f8",)).outputs == (S("f8"),)
    assert make(outputs=("f8",)) != make(outputs="f8")
    assert make(outputs=()).outputs == ()
    assert make(inputs=[{"img": "f8[n]"}, "i4"]).inputs == ({"img": S("f8[n]")}, S("i4"))
    assert make(inputs="f8[n], i4").inputs == (S("f8[n]"), S("i4"))
    assert make().outputs is None
    assert make() != make(outputs="_")
    tree = make(inputs=[{"img": "T[n]"}], outputs=Pair("T[n]", "f8[]"))
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_like() -> None:
    parameters = ["x", "y", "i"]
    one = Signature.make(like="y", parameters=parameters)
    assert one.outputs == Spec()
    assert one.encode()["outputs"] == ((None, -1, None, 1),)
    assert one.infer([S("f8[2]"), S("i4[k]")]) == [S("i4[k]")]
    two = Signature.make(like=("x", 2), parameters=parameters)
    assert [spec[3] for spec in two.encode()["outputs"]] == [0, 2]
    assert str(two) == "... -> like x, like 2"
    assert pickle.loads(pickle.dumps(two)) == two
    tree = Signature.make(inputs=[("f8", "i4"), "f4"], like="y", parameters=parameters)
    assert tree.encode()["outputs"][0][3] == 2
    for wrong, message in [
        ({"like": "z"}, "like='z' is not a positional parameter: the function has 'x', 'y', 'i'"),
        ({"like": 3}, "not the position of a parameter"),
        ({"like": "x", "inputs": [["f8"]]}, "tree of arrays"),
        ({"like": "i", "inputs": ["f8"]}, "declares 1 arguments"),
    ]:
        with pytest.raises(ValueError, match=message):
            Signature.make(**wrong, parameters=parameters)
    with pytest.raises(ValueError, match="give the position"):
        Signature.make(like="x")


@pytest.mark.parametrize(
    "conflict",
    [
        {"text": "f8->f8", "outputs": "f8"},
        {"text": "f8->f8", "inputs": ["f8"]},
        {"text": "f8->f8", "like": "x"},
        {"text": "f8->f8", "dtype": "f8"},
        {"outputs": "f8", "like": 0},
        {"outputs": "f8", "dtype": "f8"},
        {"text": Signature(), "dtype": "f8"},
        {"like": 1.5},
        {"inputs": 3},
        {"inputs": {"x": "f8"}},
        {"outputs": 3},
        {"text": 3},
    ],
)
def test_arguments_that_conflict(conflict: dict) -> None:
    with pytest.raises(TypeError):
        Signature.make(**conflict)


def test_errors_in_trees_say_where() -> None:
    with pytest.raises(ValueError, match=r"outputs\['a'\]\[1\]: expected a size") as error:
        Signature.make(outputs={"a": ("f8", "f8[+]")})
    assert str(error.value).endswith("    f8[+]\n       ^")
    with pytest.raises(ValueError, match=r"outputs\['a'\]: no input binds 'm'") as error:
        Signature.make(inputs=["f8[n]"], outputs={"a": "f8[n, m]"})
    assert str(error.value).endswith("    float64[n,m]\n              ^")
    with pytest.raises(TypeError, match=r"inputs\[1\]\['x'\]: expected a spec.*int 3"):
        Signature.make(inputs=["f8", {"x": 3}])
    with pytest.raises(ValueError, match="3 entries, the declaration 1 inputs and 1 outputs"):
        Signature.parse("(n)->()", dtype=["f8", "f8", "f8"])
    with pytest.raises(TypeError, match="made of Specs"):
        Signature(("f8",))


# --- the encoding


def test_encoding() -> None:
    assert Signature.parse("f8[n,_,3], T[n+1,*b], X[2*m-1,...] -> T[*b,m], str[k!,_!,n]").encode() == {
        "inputs": (
            (np.dtype("f8"), -1, ((Kind.NAME, 0), (Kind.ANY, 0), (Kind.FIXED, 3)), -1),
            (
                None,
                0,
                ((Kind.EXPR, ((Step.VAR, 0), (Step.CONST, 1), (Step.ADD, 0))), (Kind.VARIADIC, 0)),
                -1,
            ),
            (None, 1, ((Kind.SOLVE, (1, 2, -1)), (Kind.VARIADIC, -1)), -1),
        ),
        "outputs": (
            (None, 0, ((Kind.VARIADIC, 0), (Kind.NAME, 1)), -1),
            (np.dtype(str), -1, ((Kind.LATE, 2), (Kind.LATE, -1), (Kind.NAME, 0)), -1),
        ),
        "names": ("n", "m", "k"),
        "typevars": ("T", "X"),
        "variadics": ("b",),
        "gufunc": False,
    }
    assert Signature.parse("(n?,k),(k|1)->(n?)").encode() == {
        "inputs": ((None, -1, ((7, 0), (1, 1)), -1), (None, -1, ((8, 1),), -1)),
        "outputs": ((None, -1, ((7, 0),), -1),),
        "names": ("n", "k"),
        "typevars": (),
        "variadics": (),
        "gufunc": True,
    }
    assert Signature.make().encode()["inputs"] is None
    assert Signature.make().encode()["outputs"] == ((None, -1, None, -1),)


def test_undeclared_inputs_make_names_late() -> None:
    (_, _, first, _), (_, _, second, _) = Signature.make(outputs="f8[n,m], T[n+1,*b,2*k,k,n]").encode()["outputs"]
    assert first == ((Kind.LATE, 0), (Kind.LATE, 1))
    assert [kind for kind, _ in second] == [Kind.EXPR, Kind.VARIADIC, Kind.SOLVE, Kind.LATE, Kind.LATE]


def test_a_name_is_solved_for_only_where_it_stands_nowhere_alone() -> None:
    def kinds(text: str) -> list:
        return [kind for spec in Signature.parse(text).encode()["inputs"] for kind, _ in spec[2]]

    assert kinds("f8[n+1], f8[n] -> ()") == [Kind.EXPR, Kind.NAME]
    assert kinds("f8[n+1], f8[n+2] -> ()") == [Kind.SOLVE, Kind.EXPR]
    assert kinds("f8[n*n], f8[n+2] -> ()") == [Kind.EXPR, Kind.SOLVE]
    assert kinds("f8[n*m], f8[n], f8[m-1] -> ()") == [Kind.EXPR, Kind.NAME, Kind.SOLVE]


def run(program: tuple, sizes: list[int]) -> int:
    stack: list[int] = []
    for step, value in program:
        if step == Step.CONST:
            stack.append(value)
        elif step == Step.VAR:
            stack.append(sizes[value])
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(
                {Step.ADD: left + right, Step.SUB: left - right, Step.MUL: left * right}[step]
                if step != Step.FLOORDIV
                else left // right
            )
    (result,) = stack
    return result


sizes = st.recursive(
    st.one_of(st.sampled_from(["n", "m"]).map(Dim), st.integers(-5, 5)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a // b, inner, st.integers(1, 5) | st.just(Dim("n") + 1)),
    ),
    max_leaves=6,
).filter(lambda size: isinstance(size, Dim) and size.name is None)


@given(sizes, st.integers(0, 9), st.integers(0, 9))
def test_programs_compute_the_size(size: Dim, n: int, m: int) -> None:
    (dims,) = (spec[2] for spec in Signature((Spec("f8", ("n", "m")),), Spec("f8", (size,))).encode()["outputs"])
    ((kind, program),) = dims
    assert kind == Kind.EXPR
    assert run(program, [n, m]) == size.evaluate({"n": n, "m": m})


# --- inference


@pytest.mark.parametrize(
    ("text", "given_", "expected"),
    [
        ("f8[n],f8[n]->f8[2*n]", ["f8[3]", "f8[k]"], ["f8[6]"]),
        ("f8[n],f8[n]->f8[2*n]", ["f8[_]", "f8[k]"], ["f8[2*k]"]),
        ("f8[n],f8[n]->f8[2*n]", ["_", "f8"], ["f8[_]"]),
        ("f8[n+1]->f8[n]", ["f8[k]"], ["f8[k-1]"]),
        ("f8[2*n]->f8[n]", ["f8[4*k]"], ["f8[2*k]"]),
        ("f8[n+1],f8[n]->f8[n]", ["f8[3]", "f8[_]"], ["f8[2]"]),
        ("T[n],T[n]->T[n],X[k!]", None, None),
        ("T[n],X[n]->T[n],X[k!]", ["f4[n]", "i4[4]"], ["f4[4]", "i4[_]"]),
        ("T[*b,n]->T[*b]", ["f8[x,y,4]"], ["f8[x,y]"]),
        ("T[*b,n],_[*b]->_[*b]", ["f8[_,y,4]", "_[2,_]"], ["_[2,y]"]),
        ("f8[...,n]->f8[...,n]", ["f8[2,3]"], ["f8"]),
        ("str[n]->str[n]", ["U5[2]"], ["str[2]"]),
        ("(n,m),(m)->(n)", ["f8[k,3,4]", "f8[4]"], ["_[k,3]"]),
        ("(n,m),(m)->(n)", ["f8", "f8[4]"], ["_"]),
        ("(n),(n)->()", ["f8[5,1,3]", "f8[b,3]"], ["_[5,b]"]),
        ("(n|1),(n|1)->(n)", ["f8[1]", "f8[7,3]"], ["_[7,3]"]),
        ("(n|1),(n|1)->(n)", ["f8[1]", "f8[1]"], ["_[1]"]),
        ("(n|1),(n|1)->(n)", ["f8[k]", "f8[1]"], ["_[_]"]),
        ("(n),(n|1)->(n)", ["f8[k]", "f8[1]"], ["_[k]"]),
        ("()->(k!)", ["f8[2]"], ["_[2,_]"]),
    ],
)
def test_inference(text: str, given_: list[str] | None, expected: list[str] | None) -> None:
    if given_ is None:
        with pytest.raises(ValueError, match="no input binds the type variable 'X'"):
            Signature.parse(text)
        return
    assert Signature.parse(text).infer([S(g) for g in given_]) == [S(e) for e in expected]


@pytest.mark.parametrize(
    ("text", "given_", "message"),
    [
        ("f8[n],f8[n]->f8", ["f8[k]", "f8[k+1]"], r"argument 1 declared float64\[n\] got float64\[k\+1\]: n is k"),
        ("f8[n],f8[n]->f8", ["f8[3]", "f8[4]"], "n is 3 already, not 4"),
        ("f8[n]->f8", ["f4[3]"], "the dtype is float32, not float64"),
        ("f8[n]->f8", ["f8[3,3]"], "it has 2 dimensions, not 1"),
        ("f8[n,m,*b]->f8", ["f8[3]"], "fewer than 2"),
        ("f8[2*n]->f8", ["f8[3]"], "no size n makes 2\\*n equal to 3"),
        ("f8[n+4]->f8", ["f8[3]"], "no size n"),
        ("f8[n],f8[n*n]->f8", ["f8[3]", "f8[10]"], r"n\*n is 9, not 10"),
        ("T[n],T[n]->f8", ["f8[3]", "f4[3]"], "T is float64"),
        ("_[*b],_[*b]->f8", ["f8[3]", "f4[3,k]"], r"\*b is \(3\) already, not \(3,k\)"),
        ("f8[n]->f8[n-1]", ["f8[0]"], "output 0 .*the size n-1 would be -1"),
        ("(n),(n)->()", ["f8[2,3]", "f8[3,3]"], "leading dimensions"),
        ("(n),(n)->()", ["f8[]", "f8[3]"], "fewer than 1"),
        ("f8,f8->f8", ["f8"], "expected 2 arrays, as declared, got 1"),
    ],
)
def test_provable_mismatch(text: str, given_: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Signature.parse(text).infer([S(g) for g in given_])


def test_mismatch_in_a_tree_says_where() -> None:
    signature = Signature.make(inputs=["f8", {"img": ("f8[3]", "f8[4]")}])
    with pytest.raises(ValueError, match=r"argument 1\['img'\]\[1\] declared float64\[4\] got float64\[5\]"):
        signature.infer([Spec(), Spec(), S("f8[5]")])


declared = st.lists(
    st.lists(st.sampled_from(["n", "m", "k", "n+1", "2*m", "3", "_", "n*m", "n//2+k"]), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@given(declared, st.fixed_dictionaries({name: st.integers(0, 6) for name in "nmk"}), st.data())
def test_inference_agrees_with_concrete_shapes(inputs: list[list[str]], env: dict, data: st.DataObject) -> None:
    text = ", ".join(f"f8[{','.join(dims)}]" for dims in [*inputs, ["n", "m", "k"]])
    signature = Signature.parse(text + " -> f8[n+m, 2*k, 5], f8[(n+1)*m, n//2]")
    specs = [*signature.inputs]
    concrete = []
    for spec in specs:
        shape = []
        for dim in spec.shape:
            value = dim.evaluate(env) if isinstance(dim, Dim) else data.draw(st.integers(0, 6)) if dim is None else dim
            shape.append(value)
        concrete.append(shape)
    expected = [[d.evaluate(env) if isinstance(d, Dim) else d for d in spec.shape] for spec in signature.outputs]
    exact = signature.infer([Spec("f8", shape) for shape in concrete])
    assert [list(spec.shape) for spec in exact] == expected
    # What is known of fewer sizes never contradicts what they are: other names, 2*a for even ones, unknown.
    outer = {f"s{value}": value for value in range(50)}
    hidden = [
        Spec(
            "f8",
            [
                data.draw(st.sampled_from([v, None, Dim(f"s{v}"), v if v % 2 else Dim(f"s{v // 2}") * 2]))
                if v < 50
                else v
                for v in shape
            ],
        )
        for shape in concrete
    ]
    for spec, sizes_ in zip(signature.infer(hidden), expected, strict=True):
        for got, size in zip(spec.shape, sizes_, strict=True):
            assert got is None or (got.evaluate(outer) if isinstance(got, Dim) else got) == size


@given(st.lists(st.integers(1, 3), max_size=3).map(tuple), st.lists(st.integers(1, 3), max_size=3).map(tuple))
def test_gufunc_inference_is_numpys_matmul(a: tuple, b: tuple) -> None:
    signature = Signature.parse("(n?,k),(k,m?)->(n?,m?)")
    given_ = [Spec("f8", a), Spec("f8", b)]
    try:
        expected = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        with pytest.raises(ValueError):
            signature.infer(given_)
    else:
        assert signature.infer(given_) == [Spec(None, expected)]
