"""The stub of the extension, which is kept by hand, says what the extension has: names, arguments and types."""

import ast
import inspect
import pickle
import re
import runpy
import types
import typing
from pathlib import Path

import numpy as np
import pytest

import pyop
from pyop import _core, autograd  # noqa: F401  which gives Tensor the rest of its members
from pyop.graph import value_refusals

STUB = Path(pyop.__file__).with_name("_core.pyi")


def with_parts(stub: Path) -> list[ast.stmt]:
    """The statements of a stub, and in place of its imports from `_core_…` stubs those of what they name."""
    found: list[ast.stmt] = []
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("_core_"):
            part = ast.parse(stub.with_name(f"{node.module}.pyi").read_text()).body
            found += [n for n in part if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        else:
            found.append(node)
    return found


BODY = with_parts(STUB)
CLASSES = {node.name: node for node in BODY if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in BODY if isinstance(node, ast.FunctionDef)}

# What a Value has only to say that it has it not: leaving it out of the stub lets type checkers say so earlier.
REFUSALS = {
    *value_refusals.REFUSING,
    *("__bool__", "__complex__", "__contains__", "__delitem__", "__float__", "__index__", "__int__", "__setitem__"),
    *("__class__", "set_shape"),
}
# What is there by slots alone (csrc/array/protocol/stand_in.h): collections.abc looks for the names in the class.
UNNAMED = {(c, m) for c in ("Value", "Tensor") for m in ("__len__", "__iter__", "__contains__", "__index__")}
# What any class has, or only the interpreter asks for.
MACHINERY = {*dir(object), *dir(BaseException), "__module__", "__weakref__", "__dict__", "__vectorcalloffset__"}
MACHINERY |= {"__buffer__", "__release_buffer__"}  # what CPython 3.12 calls the slots
MACHINERY |= {"__slotnames__", "__annotations__"}  # left by an attempt to pickle, by a question of typing.Protocol


def public_runtime() -> set[str]:
    return {name for name in vars(_core) if not (name.startswith("__") and name != "__version__")}


def stub_names(body: list[ast.stmt]) -> set[str]:
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}


def only_for_checkers(node: ast.ClassDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "type_check_only" for d in node.decorator_list)


def test_the_package_is_marked_as_typed():
    assert STUB.with_name("py.typed").exists()
    assert STUB.with_name("_tree.pyi").exists()


def test_the_module_has_the_names_of_its_stub():
    described = stub_names(BODY) - {name for name, node in CLASSES.items() if only_for_checkers(node)}
    assert described == public_runtime()


@pytest.mark.parametrize("name", [name for name, node in CLASSES.items() if not only_for_checkers(node)])
def test_a_class_has_the_members_of_its_stub(name):
    real, described = getattr(_core, name), stub_names(CLASSES[name].body)
    made_by_dressing = {"__name__", "__qualname__"}  # on instances
    missing = {member for member in described - made_by_dressing if not hasattr(real, member)}
    missing -= {member for owner, member in UNNAMED if owner == name}
    assert not missing, "in the stub only"
    members = set(vars(real)) - MACHINERY - (REFUSALS if name == "Value" else set())
    assert not members - described, "in the extension only"
    bases = {ast.unparse(base) for base in CLASSES[name].bases}
    bases = {base for base in bases if not base.startswith("Generic[")}  # of type checkers alone
    assert {base.__name__ for base in real.__bases__} - {"object"} == bases


@pytest.mark.parametrize("name", [name for name, node in CLASSES.items() if not only_for_checkers(node)])
def test_properties_are_properties_and_methods_are_called(name):
    real = getattr(_core, name)
    kinds = (property, types.GetSetDescriptorType, types.MemberDescriptorType)
    for node in CLASSES[name].body:
        if isinstance(node, ast.FunctionDef) and node.name != "__hash__" and (name, node.name) not in UNNAMED:
            is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
            assert isinstance(inspect.getattr_static(real, node.name), kinds) == is_property, node.name


def arguments(node: ast.FunctionDef) -> list[str]:
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if a.arg != "self"]


def documented() -> list[object]:
    """Functions of C whose docstring begins with their signature, and methods of Python."""
    found = []
    for owner, nodes in [(None, FUNCTIONS.values()), *((c, n.body) for c, n in CLASSES.items())]:
        for node in nodes:
            real = (
                getattr(getattr(_core, owner), node.name, None) if owner and isinstance(node, ast.FunctionDef) else None
            )
            if owner is None:
                real = getattr(_core, node.name)
            text = (
                re.match(rf"{node.name}\((.*?)\)", inspect.getdoc(real) or "", re.DOTALL) if real is not None else None
            )
            if inspect.isfunction(real):
                names = [n for n, p in inspect.signature(real).parameters.items() if p.kind not in (2, 4)][1:]
            elif text:
                names = [re.split(r"[:=]", part)[0].strip() for part in text[1].split(",") if part.strip()]
            else:
                continue
            found.append(pytest.param(node, names, id=f"{owner or '_core'}.{node.name}"))
    return found


@pytest.mark.parametrize(("node", "names"), documented())
def test_arguments_are_those_of_the_extension(node, names):
    assert arguments(node) == names


# --- the types of what the extension returns


def fits(value: object, hint: object) -> bool:
    """Whether a value is of a type, as far as this stub spells types."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return True
    if hint is None:
        return value is None
    if origin is typing.Literal:
        return value in args
    if isinstance(hint, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if args[-1] is Ellipsis:
            return all(fits(item, args[0]) for item in value)
        return len(value) == len(args) and all(map(fits, value, args))
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        return isinstance(value, dict) and set(value) == set(hints) and all(fits(value[k], t) for k, t in hints.items())
    return isinstance(value, origin or hint)


def samples() -> dict[str, list[object]]:
    @pyop.op("float64[n], float64[n] -> float64[]", name="dot")
    def dot(x, y, *, scale=1.0):
        return np.dot(x, y) * scale

    g = pyop.Graph()
    x, untyped = g.input("float64[n, 3]"), g.input()
    y = dot(g.constant(np.ones(3)), x[0], scale=2.0)
    nothing = pyop.py_func(lambda v: None, [untyped], [])
    g.output([y, x.T])
    return {
        "Contract": [dot.contract],
        "Op": [dot, pyop.op(np.sin)],
        "GraphBase": [g],
        "Node": [x.node, y.node, nothing, *g.nodes],
        "Plan": [g.compile(), g.compile(threads=2)],
        "Value": [x, y, untyped, x.T],
    }


def scope() -> dict[str, object]:
    names: dict[str, object] = {**vars(typing), **vars(_core), "np": np, "Dim": pyop.Dim, "Spec": pyop.Spec}
    names |= {"Signature": pyop.Signature, "Callable": typing.get_origin(typing.Callable)}
    local = [ast.unparse(CLASSES[name]) for name in CLASSES if only_for_checkers(CLASSES[name])]
    exec("\n".join(local).replace("@type_check_only", ""), names)
    return names


@pytest.mark.parametrize("name", list(samples()))
def test_properties_have_the_types_of_the_stub(name):
    names, checked = scope(), 0
    for node in CLASSES[name].body:
        if not isinstance(node, ast.FunctionDef) or ast.unparse(node.returns) in ("Self", "_F"):
            continue
        is_property = any(ast.unparse(d) == "property" for d in node.decorator_list)
        if not is_property and node.name not in ("report", "__len__"):
            continue
        if (name, node.name) == ("Value", "__len__"):
            continue  # only where the first size is a number
        for_c = {"address", "capsule", "ctypes", "_without_python", "_arrays", "_numba_type_", "cfunc"}
        if name == "Plan" and node.name in for_c:
            continue  # only where all sizes are: tests/entry
        for sample in samples()[name]:
            if node.name == "mT" and sample.ndim in (0, 1):
                continue
            value = getattr(sample, node.name)
            value = value if is_property else value()
            hint = eval(ast.unparse(node.returns), names)
            assert fits(value, hint), f"{name}.{node.name} is {value!r}, and the stub says {ast.unparse(node.returns)}"
            checked += 1
    assert checked


def test_functions_return_the_types_of_the_stub():
    names = scope()
    for name in ("graph_being_built", "origin_here", "debug_stats", "collect"):
        with pyop.Graph():
            assert fits(getattr(_core, name)(), eval(ast.unparse(FUNCTIONS[name].returns), names)), name
        assert fits(getattr(_core, name)(), eval(ast.unparse(FUNCTIONS[name].returns), names)), name
    assert isinstance(_core.__version__, str)
    assert isinstance(_core.build_info, dict)


def test_classes_that_are_generic_for_checkers_take_brackets():
    generic = {name for name, node in CLASSES.items() if any(ast.unparse(b).startswith("Generic[") for b in node.bases)}
    assert generic == {"Op", "CompiledFunction"}
    for name in generic:
        kind = getattr(_core, name)
        alias = kind[[int, str], float]
        assert (typing.get_origin(alias), typing.get_args(alias)) == (kind, ([int, str], float))
        P, R = typing.ParamSpec("P"), typing.TypeVar("R")
        assert kind[P, R].__parameters__ == (P, R)
        assert typing.get_origin(kind[P, R][[int], float]) is kind
        assert pickle.loads(pickle.dumps(kind[..., float])) == kind[..., float]


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "typing").glob("*.py")), ids=lambda path: path.name)
def test_what_type_checkers_accept_also_runs(path, capsys):
    runpy.run_path(str(path))
