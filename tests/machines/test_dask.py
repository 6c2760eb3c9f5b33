"""Graphs as collections and tasks of Dask: `to_dask`, `submit`, `partition`, and tokens."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pyop
from pyop.machines.layout import Laid

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


def chain(n):
    def f(x):
        for k in range(n):
            x = np.cumsum(x * 0.5) if k % 7 == 3 else np.sqrt(x * x + k)
        return x

    return pyop.trace(f, "float64[n]")


def same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        same(list(found.values()), list(expected.values()))
    else:
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)


def collected(tree):
    return dask.compute(tree, scheduler="threads")[0]


def tasks(collection):
    return [key for key in dict(collection.__dask_graph__()) if "run_piece" in str(key)]


def test_chunks_are_kept_where_nodes_are_elementwise():
    graph = pyop.trace(lambda x, y: {"r": np.sin(x) * 2 - y, "s": x > y}, "float64[n, m]", "float64[n, m]")
    x, y = (np.random.default_rng(k).standard_normal((7, 5)) for k in (0, 1))
    made = graph.to_dask(x=da.from_array(x, chunks=(3, 2)), y=da.from_array(y, chunks=(3, 2)))
    assert made["r"].chunks == ((3, 3, 1), (2, 2, 1))
    same(collected(made), graph.compile()(x, y))


ACROSS = {
    "a reduction": (lambda x: x - x.mean(), ["float64[n]"]),
    "a running sum": (lambda x: np.cumsum(x), ["float64[n]"]),
    "neighbours": (lambda x: x[1:] - x[:-1], ["float64[n]"]),
    "an order": (lambda x: np.sort(x), ["float64[n]"]),
    "a constant array": (lambda x: x + np.arange(6.0), ["float64[6]"]),
    "a fixed size": (lambda x: x + 1, ["float64[6]"]),
    "a view": (lambda x: x[::-1] * 2, ["float64[n]"]),
    "where": (lambda x: np.where(x > 2, x, -x), ["float64[n]"]),
    "a size": (lambda x: x * x.shape[0], ["float64[n]"]),
    "an input": (lambda x: (x, x.sum(), 3.0, "text"), ["float64[n]"]),
}


@pytest.mark.parametrize("what", ACROSS)
def test_what_looks_across_chunks_has_all_of_them(what):
    graph = pyop.trace(ACROSS[what][0], *ACROSS[what][1])
    x = np.random.default_rng(3).standard_normal(6)
    same(collected(graph.to_dask(x=da.from_array(x, chunks=2))), graph.compile()(x))


@pytest.mark.parametrize("specs", [("float64[n]", "float64[m]"), ("float64[n, k]", "float64[k]")])
def test_broadcasting_inputs_are_gathered(specs):
    graph = pyop.trace(lambda x, y: x + y, *specs)
    x, y = np.ones((4,) * (1 + ("k" in specs[0]))), np.arange(4.0)
    same(collected(graph.to_dask(x=da.from_array(x, chunks=2), y=da.from_array(y, chunks=2))), graph.compile()(x, y))


def test_a_square_is_asked_of_the_whole():
    graph = pyop.trace(lambda x: x + 1, "float64[n, n]")
    square = np.arange(16.0).reshape(4, 4)
    same(collected(graph.to_dask(x=da.from_array(square, chunks=(1, 4)))), graph.compile()(square))
    with pytest.raises(pyop.InputError):
        graph.to_dask(x=da.ones((4, 2), chunks=(2, 2))).compute(scheduler="threads")


def test_errstate_is_that_of_the_caller():
    graph = pyop.trace(lambda x: 1 / x, "float64[n]")
    x = da.from_array(np.array([1.0, 0.0]), chunks=1)
    with np.errstate(divide="ignore"):
        ignored = graph.to_dask(x=x)
    with np.errstate(divide="raise"):
        raised = graph.to_dask(x=x)
    same(ignored.compute(scheduler="threads"), np.array([1.0, np.inf]))
    with pytest.raises(FloatingPointError):
        raised.compute(scheduler="threads")


def test_a_thousand_native_nodes_are_few_tasks():
    graph = chain(450)
    assert len(graph.nodes) > 1000
    assert 1 <= len(graph.partition().pieces) <= 10
    x = np.arange(5.0)
    made = graph.to_dask(x=da.from_array(x, chunks=2))
    assert len(tasks(made)) <= 10
    same(collected(made), graph.compile()(x))


@pyop.op("float64[n] -> float64[n]")
def slow(x):
    return x + 1


def branches(x):
    a = b = x
    for _ in range(12):
        a, b = slow(a), slow(b * 2)
    return a + b, a


def test_branches_are_pieces_and_the_report_says_why():
    graph = pyop.trace(branches, "float64[n]")
    cut = graph.partition()
    assert len(cut.pieces) == 3, str(cut)
    assert [value.name for piece in cut.pieces[:2] for value in piece.reads] == ["x", "x"]
    assert "overheads, and the next node does not only follow it" in str(cut)
    x = np.arange(3.0)
    same(collected(graph.to_dask(x=x)), graph.compile()(x))


def test_a_profile_is_what_cuts_go_by():
    graph = pyop.trace(branches, "float64[n]")
    plan = graph.compile()
    with pyop.profile() as p:
        plan(np.arange(3.0))
    assert len(graph.partition(profile=p).pieces) == 1
    assert "measured" in str(graph.partition(profile=p))


def test_the_report_says_which_costs_are_measured():
    def both(x):
        y = np.sqrt(x * x + 1)  # one pass over the elements: a row of the profile
        return slow(np.cumsum(y)), np.sort(x)

    graph = pyop.trace(both, "float64[n]")
    with pyop.profile() as p:
        graph.compile()(np.arange(100_000.0))
    cut = graph.partition(profile=p)
    assert ", by measured cost\n" in str(cut)
    assert cut.measured == {node for node in graph.nodes if node.kind == "py"}
    times = sum(row.p50_ns for row in p.rows if row.kind in ("node", "native", "group")) / 1e9
    assert sum(piece.seconds for piece in cut.pieces) <= times * 1.001
    with pyop.profile() as p:
        graph.run(graph.outputs[1], {"x": np.arange(100.0)})
    assert "by measured cost (estimated for 5 of 6 nodes)" in str(graph.partition(profile=p))
    with pyop.profile() as p:
        chain(1).compile()(np.arange(3.0))
    assert "by estimated cost (the profile has no call of these nodes)" in str(graph.partition(profile=p))
    assert "by estimated cost (there is no profile)" in str(graph.partition())


def test_what_no_piece_has_is_in_the_report():
    graph = pyop.trace(lambda x: branches(x + 1), "float64[n]")
    assert "in each that needs them: 2 nodes (add, multiply), which costs less than to send them" in str(
        graph.partition()
    )


@pyop.op("float64[n] -> float64[n]")
def fails(x):
    if x[0] < 0:
        raise ZeroDivisionError("below")
    return x


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_errors_name_the_piece_and_are_called_again(scheduler):
    graph = pyop.trace(lambda x: fails(x.sum(keepdims=True)) + 1, "float64[n]")
    made = graph.to_dask(x=da.from_array(np.array([1.0, -3.0]), chunks=1))
    with pytest.raises(ZeroDivisionError, match="below") as info:
        made.compute(scheduler=scheduler)
    notes = "\n".join(info.value.__notes__)
    assert next(node.origin for node in graph.nodes if node.name == "fails") in notes
    assert "for piece 0 of graph 'lambda', 2 nodes (fails, add), on process" in notes
    with pytest.raises(ZeroDivisionError, match="below"):
        info.value.rerun()
    again = pickle.loads(pickle.dumps(info.value.rerun))
    with pytest.raises(ZeroDivisionError, match="below"):
        again()


def test_errstate_that_is_of_this_process_is_refused():
    graph = pyop.trace(lambda x: 1 / x, "float64[n]")
    with np.errstate(divide="call"), pytest.raises(ValueError, match="use warn, raise or ignore"):
        graph.to_dask(x=np.ones(2))


@pyop.op("float64[n] -> float64[n]", stateful=True)
def counted(x):
    return x + 1


def test_stateful_nodes_are_refused_by_name_where_dask_may_compute_twice():
    with pytest.raises(ValueError, match=r"counted \(.*test_dask.py:\d+.*submit"):
        pyop.trace(lambda x: counted(x), "float64[n]").to_dask(x=np.ones(2))


def test_arrays_of_the_caller_stay_writable_and_are_not_written():
    x = np.arange(3.0)
    same(collected(pyop.trace(lambda x: slow(x), "float64[n]").to_dask(x=x)), x + 1)
    assert x.flags.writeable
    same(x, np.arange(3.0))


def test_inputs_that_are_not_there_are_named():
    graph = pyop.trace(lambda x: x, "float64[n]")
    with pytest.raises(TypeError, match=r"has the inputs \['x'\], got \['y'\]"):
        graph.to_dask(y=np.ones(2))


LAYOUTS = {
    "axes in another order": lambda x: x.transpose(1, 2, 0)[::2],
    "backwards": lambda x: x[::-1, :, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "every other": lambda x: x[:, ::2],
    "empty": lambda x: x[:0, ::2],
}


@pytest.mark.parametrize("what", LAYOUTS)
def test_pieces_get_arrays_as_they_lie_in_memory(what):
    array = LAYOUTS[what](np.random.default_rng(5).standard_normal((3, 4, 6)))
    found = pickle.loads(pickle.dumps(Laid(array), protocol=5)).array
    same(found, array)
    order = sorted(range(3), key=lambda axis: (-abs(array.strides[axis]), axis))
    assert [np.sign(n) for n in found.strides] == [np.sign(n) for n in array.strides] or not array.size
    assert order == sorted(range(3), key=lambda axis: (-abs(found.strides[axis]), axis)) or not array.size
    assert found.sum().tobytes() == array.sum().tobytes()


def script(tmp_path, body, timeout=100):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(body))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_equal_content_has_an_equal_token_in_every_process(tmp_path):
    body = """
        import numpy as np, pyop
        from dask.base import tokenize

        def made(k):
            graph = pyop.trace(lambda x: np.sin(x) * k, "float64[n]")
            return graph, graph.compile()

        print([tokenize(x) for k in (1.0, 2.0) for x in made(k)])
    """
    first, second = script(tmp_path, body), script(tmp_path, body)
    assert first == second
    assert len(set(first.split())) == 4


def test_a_partition_takes_a_profile():
    graph = pyop.trace(lambda x: x + 1, "float64[n]")
    with pytest.raises(TypeError, match=r"profile= takes the p of `with pyop\.profile\(\) as p:`, got int"):
        graph.partition(profile=3)
