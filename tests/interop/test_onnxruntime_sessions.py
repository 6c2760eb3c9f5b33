"""Sessions of ONNX Runtime that call pyop: shapes, errors, threads, forks, signals, and what is left of them."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import pyop

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from pyop.interop.onnxruntime import register  # noqa: E402

from .test_onnxruntime import model, run, same, session  # noqa: E402

# --- shapes


def told(op, name, shapes, outputs=1, **attributes):
    """A session of one node of inputs of these shapes, and the shapes of its outputs that ONNX Runtime knows."""
    typed = [
        [helper.make_tensor_value_info(f"{side}{k}", onnx.TensorProto.DOUBLE, shape) for k, shape in enumerate(each)]
        for side, each in (("x", shapes), ("y", [None] * outputs))
    ]
    names = [[value.name for value in side] for side in typed]
    graph = helper.make_graph([helper.make_node(name, *names, domain="pyop", **attributes)], "g", *typed)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("pyop", 1)])
    made.ir_version = 9
    options = register(op)
    options.log_severity_level = 4
    running = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return running, [y.shape for y in running.get_outputs()]


joined = pyop.op(lambda x, y: np.concatenate([x, y]), "float64[n], float64[m] -> float64[n+m]", name="joined")
turned = pyop.op(lambda x: (x, x.T), "float64[n,3] -> float64[n,3], float64[3,n]", name="turned")
dots = pyop.op(lambda x, y: np.einsum("...i,...i", x, y), "(n),(n)->()", dtype="float64", name="dots")
unique = pyop.op(lambda x: np.unique(x), "float64[n] -> float64[k!]", name="unique")
whole = pyop.op(lambda x: -x, "float64[*s] -> float64[*s]", name="whole")
pairs = pyop.op(lambda x, y: x + y, "float64[n], float64[n] -> float64[n]", name="pairs")
NEW = object()  # a name that no other size has


@pytest.mark.parametrize(
    ("op", "shapes", "wanted"),
    [
        (joined, [[2], [3]], [[5]]),
        (joined, [["a"], [3]], [[NEW]]),
        (joined, [["a"], ["a"]], [[NEW]]),
        (joined, [None, None], [[NEW]]),
        (turned, [["batch", 3]], [["batch", 3], [3, "batch"]]),
        (turned, [[4, 3]], [[4, 3], [3, 4]]),
        (turned, [None], [[NEW, 3], [3, NEW]]),
        (dots, [["batch", 3], [3]], [["batch"]]),
        (dots, [[5, 1, 3], ["a", 3]], [[5, "a"]]),
        (unique, [[3]], [[NEW]]),
        (whole, [["a", 2, "b"]], [["a", 2, "b"]]),
        (whole, [[0, 2]], [[0, 2]]),
        (pairs, [["a"], ["a"]], [["a"]]),
        (pyop.trace(lambda x: np.sin(x).sum(0), "float64[n,3]", name="sums"), [["batch", 3]], [[3]]),
        (pyop.trace(lambda x: x.T * 2, "float64[n,3]", name="lines"), [["batch", 3]], [[3, "batch"]]),
        (pyop.trace(lambda x: x.sum(), "float64[4]", name="number"), [[4]], [[]]),
    ],
)
def test_shapes_of_outputs_are_known(op, shapes, wanted):
    name = op.name
    running, found = told(op, name, shapes, len(wanted))
    given = {size for shape in shapes for size in shape or []}
    for shape, expected in zip(found, wanted, strict=True):
        assert len(shape) == len(expected)
        for size, other in zip(shape, expected, strict=True):
            assert size == other or (other is NEW and (size is None or (type(size) is str and size not in given)))
    sizes = {"a": 2, "b": 3, "batch": 4}
    random = np.random.default_rng(0)
    shapes = [[3] * 2 if shape is None and op is turned else shape or [2] for shape in shapes]
    arrays = [random.normal(size=[sizes.get(size, size) for size in shape]) for shape in shapes]
    try:
        expected = (op.compile() if isinstance(op, pyop.Graph) else op)(*arrays)
    except (ValueError, pyop.InputError):
        pytest.fail("the case is not one of the op's")
    leaves = expected if isinstance(expected, tuple) else (expected,)
    for y, each in zip(run(running, *arrays), leaves, strict=True):
        assert same(y, np.asarray(each))


@pytest.mark.parametrize("shapes", [[None, [3]], [[], [3]]])
def test_shapes_that_nobody_knows_are_not_told(shapes):
    """A shape that is not known looks like that of a number, and loops may be in front."""
    running, found = told(dots, "dots", shapes)
    assert found in ([None], [[]])  # which ONNX Runtime shows in one way
    if shapes[0] is None:
        for n in ((3,), (4, 3), (2, 5, 3)):
            assert run(running, np.ones(n), np.ones(3))[0].shape == n[:-1]


def test_an_operator_of_several_dtypes_has_no_shapes_to_tell():
    """ONNX Runtime would take the types of the first of them."""
    several = pyop.op(lambda x: x * 2, "T[n] -> T[n]", name="several")
    for dtype in ("f8", "f4", "i8"):
        x = np.arange(3).astype(dtype)
        assert same(run(session(several, "several", [dtype], [dtype], nodes=2), x)[0], x * 4)


def test_what_does_not_fit_is_an_error_of_the_call():
    running, _ = told(pairs, "pairs", [[2], [3]])
    with pytest.raises(Exception, match="InputError"):
        run(running, np.ones(2), np.ones(3))


def test_names_of_sizes_do_not_share_memory():
    """Sizes of one name are equal to ONNX Runtime, which then takes the memory of one tensor for another."""

    @pyop.op("float64[n] -> float64[k!]")
    def shrink(x):
        return x[: max(len(x) // 2, 1)]

    @pyop.op("float64[n] -> float64[2*n]")
    def grow(x):
        return np.concatenate([x, x])

    nodes = [
        helper.make_node(name, [f"m{k}"], [f"m{k + 1}"], domain="pyop")
        for k, name in enumerate(["shrink", "grow", "shrink", "shrink", "grow", "grow", "shrink"])
    ]
    ends = [helper.make_tensor_value_info(f"m{k}", onnx.TensorProto.DOUBLE, ["n"] if k == 0 else None) for k in (0, 7)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("pyop", 1)])
    made.ir_version = 9
    running = ort.InferenceSession(made.SerializeToString(), register([shrink, grow]))
    for n in (8, 3, 64, 1, 1000):
        x = wanted = np.arange(float(n))
        for node in nodes:
            wanted = (shrink if node.op_type == "shrink" else grow)(wanted)
        assert same(running.run(None, {"m0": x})[0], wanted)


# --- errors


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LookupError("no such thing"), "LookupError: no such thing"),
        (Unprintable(), r"Unprintable: <exception str\(\) failed>"),
        (ValueError("half \ud800 of a pair"), r"ValueError: half \\ud800 of a pair"),
        (ValueError("a\0b"), r"ValueError: a\\0b"),
        (ExceptionGroup("several", [ValueError(1), TypeError(2)]), r"ExceptionGroup: several \(2 sub-exceptions\)"),
        (SystemExit(3), "SystemExit: 3"),
        (MemoryError(), "MemoryError"),
        (StopIteration(4), "StopIteration: 4"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_a_graph_is_one_of_run(error, words, threads):
    """Of a Python node of a registered graph, with its type and words, the op and the node."""
    fails = [True]

    @pyop.op("float64[n] -> float64[n]")
    def picky(x):
        if fails[0]:
            raise error
        return x

    graph = pyop.trace(lambda x: picky(np.sin(x)) * 2, "float64[3]", name="program")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    running = ort.InferenceSession(model("program", ["f8"], ["f8"]), register(graph, options))
    x = np.ones(3)
    for _ in range(2):
        fails[0] = True
        with pytest.raises(Exception, match=words) as caught:
            run(running, x)
        assert type(caught.value).__module__.startswith("onnxruntime")
        assert "node 0" in str(caught.value)
        fails[0] = False
        assert same(run(running, x)[0], np.sin(x) * 2)


def test_errstate_is_that_of_the_calling_thread():
    """A session without threads of its own computes where it is called."""

    @pyop.op("float64[n] -> float64[n]")
    def ratio(x):
        return x / (x - 1)

    x = np.array([1.0, 2.0])
    plan = pyop.trace(lambda x: x / (x - 1), "float64[2]", name="plan").compile()
    for name, each in (("ratio", ratio), ("plan", plan)):
        running = session({name: each}, name, ["f8"], ["f8"])
        with np.errstate(all="ignore"):
            assert same(run(running, x)[0], np.array([np.inf, 2.0]))
        with np.errstate(all="raise"), pytest.raises(Exception, match="FloatingPointError: divide by zero"):
            run(running, x)
        with pytest.raises(Exception, match="RuntimeWarning: divide by zero"):  # the tests make errors of warnings
            run(running, x)


def test_errstate_on_threads_of_onnx_runtime():
    """NumPy's defaults, whatever the caller has; and what is set there is not the caller's."""
    seen = {}

    @pyop.op("float64[n] -> float64[n]")
    def look(x):
        seen.setdefault(threading.get_ident(), np.geterr())
        return x

    nodes = [helper.make_node("look", ["x0"], [f"y{k}"], domain="pyop") for k in range(8)]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, None)
        for name in ["x0", *(f"y{k}" for k in range(8))]
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("pyop", 1)])
    made.ir_version = 9
    options = register(look)
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 3
    running = ort.InferenceSession(made.SerializeToString(), options)
    with np.errstate(all="raise"):
        caller = np.geterr()
        for _ in range(20):
            for y in running.run(None, {"x0": np.ones(2)}):
                assert same(y, np.ones(2))
        assert np.geterr() == caller
    defaults = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
    for thread, state in seen.items():
        assert state == (caller if thread == threading.get_ident() else defaults)


# --- threads, and what is left


def test_two_sessions_with_threads_called_from_four():
    @pyop.op("float64[n] -> float64[n]")
    def own(x):
        return np.sqrt(np.abs(x)) + 1

    native = pyop.trace(lambda x: np.sin(x) * x, "float64[n]", name="native")
    made = []
    for mode in (ort.ExecutionMode.ORT_SEQUENTIAL, ort.ExecutionMode.ORT_PARALLEL):
        options = register([own, native])
        options.intra_op_num_threads = 3
        options.inter_op_num_threads = 2
        options.execution_mode = mode
        for name in ("own", "native"):
            running = ort.InferenceSession(model(name, ["f8"], ["f8"], nodes=4), options)
            made.append((running, own if name == "own" else native.compile()))
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(25):
            running, function = made[random.integers(len(made))]
            x = wanted = random.normal(size=random.integers(0, 3000))
            for _ in range(4):
                wanted = function(wanted)
            if not same(run(running, x)[0], wanted):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.parametrize("first", ["session", "op", "options"])
def test_any_order_of_ends(first):
    op = pyop.op(lambda x: x * 3, "float64[n] -> float64[n]", name="triple")
    options = register(op)
    running = ort.InferenceSession(model("triple", ["f8"], ["f8"]), options)
    x = np.arange(3.0)
    assert same(run(running, x)[0], x * 3)
    if first == "op":
        del op
    elif first == "options":
        del options
    else:
        del running
    gc.collect()
    if first != "session":
        assert same(run(running, x)[0], x * 3)
    else:
        assert same(op(x), x * 3)
        again = ort.InferenceSession(model("triple", ["f8"], ["f8"]), options)
        assert same(run(again, x)[0], x * 3)


def test_an_array_that_outlives_its_session():
    op = pyop.op(lambda x: x + 1, "float64[n] -> float64[n]", name="more")
    running = session(op, "more", ["f8"], ["f8"])
    x = np.arange(1000.0)
    y = run(running, x)[0]
    del running
    gc.collect()
    assert same(y, x + 1)


def test_options_and_sessions_are_not_copied():
    op = pyop.op(lambda x: x, "float64[n] -> float64[n]", name="same")
    options = register(op)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"pickle.*SessionOptions"):
            copied(options)
    assert same(run(ort.InferenceSession(model("same", ["f8"], ["f8"]), options), np.ones(2))[0], np.ones(2))


def test_registered_again_it_is_the_same():
    import pyop.interop.onnxruntime as module

    op = pyop.op(lambda x: x + 1, "float64[n] -> float64[n]", name="once")
    plan = pyop.trace(lambda x: x + 1, "float64[2]", name="planned").compile()
    register([op, plan])
    before = dict(module._registered)
    for _ in range(3):
        register([op, plan])
    assert module._registered == before
    register([op, plan], copy=True)
    register([op, plan], domain="other")
    register({"once": op, "other": plan})
    assert len(module._registered) == len(before) + 3
    other = pyop.op(lambda x: x + 2, "float64[n] -> float64[n]", name="once")
    assert same(run(session(op, "once", ["f8"], ["f8"]), np.ones(2))[0], np.full(2, 2.0))
    assert same(run(session(other, "once", ["f8"], ["f8"]), np.ones(2))[0], np.full(2, 3.0))
    graph = pyop.trace(lambda x: x * 2, "float64[2]", name="graph")
    for _ in range(2):
        assert same(run(session(graph, "graph", ["f8"], ["f8"]), np.ones(2))[0], np.full(2, 2.0))


# --- in a process of its own


def child(code, timeout=100):
    head = textwrap.dedent(
        """
        import faulthandler, gc, os, signal, sys, threading, time
        import numpy as np, onnxruntime as ort, pyop
        from pyop.interop.onnxruntime import register
        from tests.interop.test_onnxruntime import model, run, session
        faulthandler.dump_traceback_later(80, exit=True)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_a_fork_after_a_session_was_made():
    """Both go on; only threads of ONNX Runtime's own are not in the child."""
    assert child(
        """
        op = pyop.op(lambda x: x * 2, "float64[n] -> float64[n]", name="double")
        plan = pyop.trace(lambda x: np.exp(x) + x, "float64[3]", name="plan").compile()
        one = session(op, "double", ["f8"], ["f8"])
        two = session(plan, "plan", ["f8"], ["f8"])
        x = np.arange(3.0)
        run(one, x), run(two, x)
        pid = os.fork()
        right = (run(one, x)[0] == x * 2).all() and (run(two, x)[0] == np.exp(x) + x).all()
        fresh = session(op, "double", ["f8"], ["f8"], nodes=2)
        right = right and (run(fresh, x)[0] == x * 4).all()
        if pid == 0:
            del one, two, fresh
            gc.collect()
            os._exit(0 if right else 1)
        print(bool(right), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    ) == ["True", "0"]


def test_ctrl_c_while_an_op_computes():
    """The KeyboardInterrupt is heard in the op, arrives at the caller, and the session goes on."""
    assert child(
        """
        slow = [True]
        @pyop.op("float64[n] -> float64[n]")
        def wait(x):
            if slow[0]:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                time.sleep(60)
            return x
        running = session(wait, "wait", ["f8"], ["f8"])
        begin = time.monotonic()
        try:
            try:
                run(running, np.ones(2))
            except KeyboardInterrupt:
                raise
            except Exception as error:
                words = str(error)
                for _ in range(1000):
                    pass
                print("not", words)
        except KeyboardInterrupt:
            print("interrupted")
        print(time.monotonic() - begin < 30)
        slow[0] = False
        print((run(running, np.ones(2))[0] == 1).all())
        """
    ) == ["interrupted", "True", "True"]


def test_the_end_of_python_with_sessions_alive():
    assert child(
        """
        @pyop.op("float64[n] -> float64[n]")
        def slow(x):
            time.sleep(0.001)
            return x
        running = session(slow, "slow", ["f8"], ["f8"], nodes=50)
        kept = [running]
        kept.append(kept)
        def work():
            while True:
                run(running, np.ones(2))
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        print("ends")
        """
    ) == ["ends"]


def test_a_thousand_sessions_leave_nothing():
    growth = child(
        """
        op = pyop.op(lambda x: x + 1, "float64[n] -> float64[n]", name="more")
        plan = pyop.trace(lambda x: x * 2, "float64[n]", name="plan").compile()
        x = np.ones(3)
        def resident():
            gc.collect()
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4
        def many(n):
            for _ in range(n):
                for name, each in (("more", op), ("plan", plan)):
                    run(session(each, name, ["f8"], ["f8"]), x)
        if not os.path.exists("/proc/self/statm"):
            resident = lambda: 0
        many(50)
        objects, before = len(gc.get_objects()), resident()
        many(450)
        print(len(gc.get_objects()) - objects, resident() - before)
        """
    )
    objects, kilobytes = map(int, growth)
    assert objects < 200
    assert kilobytes < 3000  # three a session, where one of ONNX Runtime's takes hundreds
