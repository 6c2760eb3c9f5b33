"""The closed list of types: what is on it comes back from JSON, pickles and copies, what is not is refused."""

import copy
import dataclasses
import functools
import json
import pickle
from types import MethodType

import numpy as np
import pytest

pytest.importorskip("onnx")

import pyop
from pyop._core import CallOnTree
from pyop._tree import flatten
from pyop.declare.abstract import AbstractRule
from pyop.declare.rebuild import CallForOne, CallOnTrees, call_on_tree
from pyop.declare.references import found_at
from pyop.gradients.differences import PullBack, PushForward
from pyop.graph.in_place import InPlace
from pyop.graph.symbolic_number import OnNumbers
from pyop.loops.node import Branch, Loop
from pyop.saving.graphs import without_absorbed
from pyop.saving.kinds import FORMS, Leaf, contract_of_parts, forms_of
from pyop.saving.values import Reader, Writer
from pyop.transforms.op_calls import Backward, Forward, JacobianOf

from . import graphs
from .test_saving import assert_same_bits

ROOT = graphs.root.contract.gradient
ENERGY = graphs.energy.contract.gradient
PARTS = (*graphs.noisy.contract._parts[:4], AbstractRule(graphs.loss, "noisy"), ENERGY)
TREE = flatten({"a": (1, [2, None]), "b": graphs.Pair(3, 4)})[1]
OBJECTS = np.array(["a", None, 2.5], object)
WITH_PARTS = without_absorbed(pyop.trace(graphs.with_parts, "float64[3]"))
CALLED = [node.function for node in WITH_PARTS.nodes if node.kind == "py"]
EXAMPLES = {
    "float": [-0.0, float("inf"), 0.1],
    "complex": [complex(-0.0, 0.1)],
    "bytes": [b"", b"\0\xff"],
    "tuple": [(), (1, ("x", None)), ([1, 2.5], True)],
    "set": [{1, "a"}, set()],
    "frozenset": [frozenset({(1, 2)})],
    "dict": [{"a": [1], 2: {None: b"x"}}, {}],
    "slice": [slice(None, 3, -1)],
    "range": [range(1, 9, 3)],
    "ellipsis": [Ellipsis],
    "novalue": [np._NoValue],
    "objects": [OBJECTS.reshape(3, 1)],
    "strings": [np.array(["a", "ü"], np.dtypes.StringDType())],
    "array": [np.arange(6.0).reshape(2, 3), np.zeros((0, 2), "i2"), np.zeros(2, "f8,(2,)i2")],
    "scalar": [np.float32(0.1), np.datetime64("2020-01-01", "D"), np.bool_(True)],
    "element": [np.dtype("bfloat16")],
    "dtype": [np.dtype("<M8[ns]"), np.dtype([("a", "f8", (2,)), ("b", [("c", "S2")])]), np.dtypes.StringDType()],
    "leaf": [Leaf],
    "type": [float, np.int16],
    "spec": [pyop.Spec.parse("float64[n+1,*b,3]")],
    "spec_of": [pyop.Spec(np.dtype([("a", "f8")]), (None, 2))],
    "mark": [pyop.Spec.parse("f4[*batch,m!]").shape[0], pyop.Spec.parse("f4[*batch,m!]").shape[1]],
    "dim": [pyop.Spec.parse("f4[2*n+1]").shape[0]],
    "signature": [graphs.dot.contract.signature, graphs.renamed.contract.signature],
    "tree": [TREE, flatten([1])[1], flatten(1)[1], flatten([[]])[1]],
    "op": [graphs.dot, graphs.energy],
    "gradient": [ROOT, ENERGY],
    "contract_of_saving": [ROOT.saving[1]],
    "contract_of": [graphs.dot.contract, graphs.energy.contract],
    "contract": [graphs.noisy.contract, contract_of_parts(graphs.noisy.contract.signature, *PARTS)],
    "call_on_tree": [call_on_tree(np.stack, flatten((([1, 2],), {"axis": 0}))[1], (CallOnTree.ARRAY,) * 2 + (1,))],
    "call_on_trees": [CallOnTrees(graphs.renamed.__wrapped__, (flatten({"a": 1})[1],))],
    "call_for_one": [CallForOne(np.split)],
    "made": [
        Backward(ENERGY, (0,), 1, 1, {}),
        Forward(ENERGY, 1, {}),
        InPlace("__iadd__"),
        JacobianOf(ENERGY, graphs.energy.__wrapped__, {}),
        OnNumbers(np.add, (None, 2)),
        PullBack(graphs.loss, "loss", (flatten(1)[1],), "fd", (0,), 1, {}),
        PushForward(graphs.loss, "loss", (flatten(1)[1],), "fd", {}),
    ],
    "saving": [ROOT.saving[0]],
    "graph": [WITH_PARTS],
    "loop": [x for x in CALLED if isinstance(x, Loop)],
    "branch": [x for x in CALLED if isinstance(x, Branch)],
    "partial": [functools.partial(np.sum, axis=0)],
}  # fmt: skip


def taken(x):
    """An object as nested lists that can be compared: to the last bit, with the types of everything."""
    if isinstance(x, (list, tuple)):
        return [type(x), *map(taken, x)]
    if x is None or isinstance(x, (str, bool, int, set, frozenset, dict)):
        return [type(x), x]
    if isinstance(x, MethodType):
        return [taken(x.__self__), taken(x.__func__)]
    form = next(forms_of(x), None)
    if form is None or form.at is not None or (form.parts(x) is x):
        return [type(x), id(x)]
    if form.name == "contract":  # rules are made anew
        signature, *parts, rule, gradient = form.parts(x)
        return [Contract, taken(signature), parts, rule and (rule.rule, rule._name), gradient]
    return [form.name, taken(form.parts(x))]


Contract = type(graphs.dot.contract)


def by_json(x):
    writer = Writer()
    text = json.dumps(writer.write(x))
    return Reader(found_at).read(json.loads(text))


WAYS = {
    "json": by_json,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def test_every_form_has_an_example():
    assert EXAMPLES.keys() == {form.name for form in FORMS}
    made = {type(x) for x in EXAMPLES["made"]}
    assert made == {form.of for form in FORMS if form.name == "made"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_comes_back(name, way):
    for x in EXAMPLES[name]:
        assert next(forms_of(x)).name == name
        again = WAYS[way](x)
        assert type(again) is type(x)
        assert taken(again) == taken(x)


def test_a_copied_graph_is_the_graph():
    for name in graphs.GRAPHS:
        graph = graphs.build(name)
        args = graphs.arguments(graph)
        assert_same_bits(copy.copy(graph).compile()(*args), graph.compile()(*args))


class Sum(functools.partial):
    def __call__(self, *args):
        return super().__call__(*args) + 1


@dataclasses.dataclass
class Masked:
    inside: object


NOT_ON_THE_LIST = {
    "a dtype with room between its fields": np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"]}, align=True),
    "an array of a dtype": np.dtype(("f8", (2,))),
    "a masked array": np.ma.masked_array([1.0, 2.0], [True, False]),
    "a record array": Masked(np.rec.array([(1.0, 2.0)], "f8,f8")),
    "a partial of another kind": [Sum(np.add, 1)],
}


@pytest.mark.parametrize("name", NOT_ON_THE_LIST)
def test_what_would_come_back_as_something_else_is_refused(name):
    with pytest.raises(ValueError, match="embed=True"):
        Writer().write(NOT_ON_THE_LIST[name])
