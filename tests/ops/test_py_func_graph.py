"""py_func in a graph: what runs, how often and in which order; names, static shapes, feeding; threads and re-entry."""

import queue
import threading
import time

import numpy as np
import pytest

import pyop

f32 = np.float32


def counter():
    box = [0]

    def tick(*_):
        box[0] += 1
        return np.int64(box[0])

    return box, tick


# --- stateful and stateless


def test_stateful_runs_once_a_run():
    box, tick = counter()
    g = pyop.Graph()
    with g:
        y = pyop.py_func(tick, [], "int64")
        constant = pyop.py_func(tick, [np.ones(2)], "int64")
    assert [int(g.run(y)) for _ in range(3)] == [1, 2, 3]
    assert [[int(v) for v in g.run([y, constant])] for _ in range(2)] == [[4, 5], [6, 7]]
    a, b, c = g.run([y, y + y, y + np.int64(10)])
    assert (int(a), int(b), int(c), box[0]) == (8, 16, 18, 8)


def test_two_stateful_nodes_are_two():
    box, tick = counter()
    g = pyop.Graph()
    p = g.input("float32")
    nodes = [pyop.py_func(tick, [p], "int64") for _ in range(3)]
    assert [int(v) for v in g.run(nodes, {p: f32(0)})] == [1, 2, 3]
    assert box == [3]


def test_equal_stateless_calls_are_one():
    _, tick = counter()
    g = pyop.Graph()
    p, q = g.input("float32"), g.input("float32")
    same = [pyop.py_func(tick, [p], "int64", stateful=False, name=name) for name in (None, "other", None)]
    other_input = pyop.py_func(tick, [q], "int64", stateful=False)
    other_type = pyop.py_func(tick, [p], "int64[]", stateful=False)
    got = g.run([*same, other_input, other_type], {p: f32(0), q: f32(0)})
    assert [int(v) for v in got] == [1, 1, 1, 2, 3]
    g.output([same[0], same[2]])
    unmerged = g.compile(optimize=False)
    assert [int(v) for v in unmerged(f32(0), f32(0))] == [4, 5]


def test_stateless_on_constants_runs_once_for_all_runs():
    box, tick = counter()
    g = pyop.Graph()
    with g:
        y = pyop.py_func(tick, [], "int64", stateful=False)
        z = pyop.py_func(lambda v: v * 10, [y], "int64", stateful=False)
    assert [int(g.run(y)) for _ in range(3)] == [1, 1, 1]
    assert [int(g.run(z)) for _ in range(3)] == [10, 10, 10]
    g.output(z)
    assert int(g.compile()()) == 10
    assert box == [1]


def test_stateless_with_fed_inputs_runs_every_time():
    g = pyop.Graph()
    p = g.input("float32")
    y = pyop.py_func(lambda v: v * 2, [p], "float32", stateful=False)
    assert [float(g.run(y, {p: f32(k)})) for k in (1, 2, 1)] == [2, 4, 2]


def test_run_runs_what_is_fetched_and_a_plan_all_that_is_stateful():
    box, tick = counter()
    pure, pure_tick = counter()
    g = pyop.Graph()
    p = g.input("float32")
    pyop.py_func(tick, [p], "int64")
    pyop.py_func(tick, [p], [])
    pyop.py_func(pure_tick, [p], "int64", stateful=False)
    y = pyop.py_func(lambda v: v, [p], "float32")
    assert g.run(y, {p: f32(1)}) == 1
    assert (box, pure) == ([0], [0])
    g.output(y)
    ran = g.compile()
    with pytest.raises(pyop.OutputError, match="tick_1 returns 1 values, but expects to see 0"):
        ran(f32(1))
    assert (box, pure) == ([2], [0])


@pytest.mark.parametrize("threads", [1, 4])
def test_stateful_nodes_keep_creation_order(threads):
    log = []

    def step(k):
        def run(*_):
            time.sleep(0.0002 * ((7 * k) % 5))
            log.append(k)
            return f32(k)

        return run

    g = pyop.Graph()
    p = g.input("float32")
    nodes = [pyop.py_func(step(k), [p], "float32") for k in range(12)]
    assert [float(v) for v in g.run(nodes[::-1], {p: f32(0)}, threads=threads)] == list(range(12))[::-1]
    assert log == list(range(12))
    g.output(nodes)
    log.clear()
    g.compile(threads=threads)(f32(0))
    assert log == list(range(12))


def test_a_chain_follows_the_data():
    g = pyop.Graph()
    t = p = g.input("float64")
    for _ in range(200):
        t = pyop.py_func(lambda v: v + 1, [t], "float64")
    assert g.run(t, {p: 0.0}) == 200
    assert g.run(t, {p: 0.0}, threads=4) == 200


# --- names, types, feeding


def test_names():
    class Callable:
        def __call__(self):
            return f32(0)

    g = pyop.Graph()
    with g:
        made = [pyop.py_func(f, [], "float32", name=n) for f, n in [(len, None), (len, None), (len, "a"), (len, "a")]]
        made += [pyop.py_func(lambda: f32(0), [], "float32"), pyop.py_func(Callable(), [], "float32")]
        many = pyop.py_func(lambda: 0, [], ["float32"] * 2, name="many")
        nothing = pyop.py_func(lambda: None, [], [], name="nothing")
        clash = pyop.py_func(len, [], "float32", name="a_1")
    assert [v.name for v in made] == ["len", "len_1", "a", "a_1", "lambda", "Callable"]
    assert [v.name for v in many] == ["many", "many:1"]
    assert isinstance(nothing, pyop.Node)
    assert nothing.name == "nothing"
    assert clash.name not in {"a", "a_1"}
    assert len({node.name for node in g.nodes}) == len(g)


@pytest.mark.parametrize("name", ["", "has space", "_under", "a:b", "bad!", "new\nline", "a\0", 3, b"a"])
def test_wrong_names(name):
    if name == "_under":  # an identifier of Python, though TensorFlow would not have it
        pyop.py_func(lambda: f32(0), [], "float32", name=name)
        return
    with pyop.Graph() as g:
        with pytest.raises(ValueError if isinstance(name, str) else TypeError, match="name"):
            pyop.py_func(lambda: f32(0), [], "float32", name=name)
    assert len(g) == 0
    with pytest.raises((ValueError, TypeError), match="name"):
        pyop.py_func(lambda: f32(0), [], "float32", name=name)


def test_static_type_is_known_and_shape_unknown():
    g = pyop.Graph()
    y = pyop.py_func(lambda v: v, [g.constant(np.zeros((2, 3), f32))], "float32")
    text, shaped = pyop.py_func(lambda v: v, [y], ["string", "float32[2,n]"])
    assert (y.dtype, y.shape, y.ndim) == (np.dtype(f32), None, None)
    assert text.dtype == np.dtype(object)
    assert (shaped.ndim, shaped.shape[0], str(shaped.spec)) == (2, 2, "float32[2,_]")


def test_feeding_a_result_replaces_the_call():
    box, tick = counter()
    g = pyop.Graph()
    with g:
        y = pyop.py_func(tick, [], "int64")
        a, b = pyop.py_func(lambda v: (v, v), [y], ["int64", "int64"])
    assert [int(v) for v in g.run([a, b], {y: np.int64(7)})] == [7, 7]
    assert box == [0]
    assert int(g.run(a + b, {y: np.int64(7), a: np.int64(100)})) == 107
    with pytest.raises(pyop.GraphError, match="needed but not fed"):
        g.run(pyop.py_func(len, [g.input("float32")], "int64"))


def test_a_node_without_results_can_be_fetched_among_others():
    log = []
    g = pyop.Graph()
    p = g.input("float32")
    effect = pyop.py_func(lambda v: log.append(float(v)), [p], [])
    twice = pyop.py_func(lambda v: v * 2, [p], "float32")
    assert g.run(effect, {p: f32(4)}) is None
    assert g.run([effect, twice], {p: f32(5)}) == [None, 10]
    assert g.run({"e": effect}, {p: f32(6)}) == {"e": None}
    assert log == [4, 5, 6]


def test_the_types_of_results_are_checked_at_run_time_in_deep_graphs():
    g = pyop.Graph()
    p = g.input("float32")
    y = pyop.py_func(lambda v: v.astype("f8"), [p], "float32", name="promise")
    z = np.sin(y) + f32(1)
    with pytest.raises(pyop.OutputError, match="0-th value returned by promise is double, but expects float"):
        g.run(z, {p: f32(1)})


# --- threads


def test_blocking_functions_overlap():
    tokens = queue.Queue(1)

    def put(_):
        tokens.put(b"token")
        tokens.join()
        return f32(1)

    def get(_):
        tokens.get(timeout=20)
        tokens.task_done()
        return f32(2)

    for order in ([put, get], [get, put]):
        g = pyop.Graph()
        p = g.input("float32")
        nodes = [pyop.py_func(f, [p], "float32", stateful=False) for f in order]
        assert sorted(float(v) for v in g.run(nodes, {p: f32(0)}, threads=2)) == [1, 2]


@pytest.mark.parametrize("threads", [1, 3])
def test_reentry_to_any_depth(threads):
    g = pyop.Graph()
    n = g.input("int64")

    def fibonacci(k):
        if k < 2:
            return k
        return g.run(total, {n: k - 1}, threads=threads) + g.run(total, {n: k - 2}, threads=threads)

    def depth(k):
        return k if k == 0 else g.run(chain, {n: k - 1}, threads=threads) + 1

    total = pyop.py_func(fibonacci, [n], "int64")
    chain = pyop.py_func(depth, [n], "int64")
    assert g.run(total, {n: 12}, threads=threads) == 144
    assert g.run(chain, {n: 60}, threads=threads) == 60


def test_many_threads_reenter_at_once():
    inner = pyop.Graph()
    x = inner.input("float64")
    y = pyop.py_func(lambda v: (time.sleep(0.001), v * 2)[1], [x], "float64")
    outer = pyop.Graph()
    p = outer.input("float64")
    nodes = [
        pyop.py_func(lambda v, k=k: inner.run(y, {x: v + k}, threads=4), [p], "float64", stateful=False)
        for k in range(16)
    ]
    wrong = []

    def work(base):
        got = outer.run(nodes, {p: float(base)}, threads=4)
        wrong.extend(k for k in range(16) if got[k] != 2 * (base + k))

    workers = [threading.Thread(target=work, args=(100 * k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert not wrong
