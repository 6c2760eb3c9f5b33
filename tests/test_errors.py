"""Errors: what they are, what they say, and that the op works on afterwards."""

import gc
import re
import weakref

import numpy as np
import pytest

import pyop


def line_of(fn):
    return fn.__code__.co_firstlineno


@pytest.fixture(params=["eager", "plan"])
def run(request):
    """Calls an op at once, or as the only node of a plan."""
    if request.param == "eager":
        return lambda op, *args, **kwargs: op(*args, **kwargs)

    def in_plan(op, *args, **kwargs):
        arrays = [np.asarray(a) for a in args]
        specs = [pyop.Spec(a.dtype) for a in arrays]
        return pyop.trace(lambda *xs: op(*xs, **kwargs), *specs).compile()(*arrays)

    return in_plan


@pytest.mark.parametrize(
    ("declared", "returned", "words"),
    [
        ("float64[n]", np.ones(4), ["0-th value returned by f is float64[4], but expects float64[n]", "n = 3"]),
        (
            "float64[n]",
            np.ones(3, "f4"),
            ["is float32[3], but expects float64[n]", "nothing is cast", "return float64"],
        ),
        ("float64[]", np.ones(3), ["is float64[3], but expects float64[]"]),
        ("float64[2*n+1]", np.ones(6), ["but expects float64[2*n+1]", "n = 3"]),
        ("int64[]", 2.5, ["is float64[], but expects int64[]", "(from a float)"]),
        ("int64[]", True, ["is bool[], but expects int64[]"]),
        ("float64[]", None, ["Unsupported object type NoneType", "0-th value returned by f"]),
        ("float64[n]", "abc", ["but expects float64[n]"]),
        ("float64[n]", {1: 2}, ["Unsupported object type dict"]),
        ("float64[n]", [1.0, None, 2.0], ["Unsupported object type float"]),
        ("float64[n]", object(), ["Unsupported object type object"]),
        ("float64[n]", (1.0, 2.0, 3.0), ["f returns 3 values, but expects to see 1 values"]),
        ("float64[n]", (), ["f returns 0 values, but expects to see 1 values"]),
        ("float64[], float64[]", (1.0,), ["f returns 1 values, but expects to see 2 values"]),
        ("float64[], float64[]", 1.0, ["f returns 1 values, but expects to see 2 values"]),
        ("float64[], float64[]", (1.0, 2), ["1-th value returned by f is int64[], but expects float64[]"]),
        ("float64[], float64[]", None, ["f returns 1 values, but expects to see 2 values"]),
        ("float64[2*(n-1)]", np.ones(6), ["but expects float64[2*", "n = 3"]),
        ("float64[n//2-1]", np.ones(6), ["but expects float64[n//2-1]"]),
    ],
)
def test_wrong_results(run, declared, returned, words):
    def f(x):
        return returned

    op = pyop.op(f, "float64[n] -> " + declared)
    with pytest.raises(pyop.OutputError) as caught:
        run(op, np.arange(3.0))
    text = str(caught.value)
    for part in [*words, "'f'", __file__]:
        assert part in text, text
    assert re.search(r"\.py:\d+", text)
    for kind in (TypeError, ValueError, pyop.PyopError):
        assert isinstance(caught.value, kind)
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(
    ("declared", "arguments", "words"),
    [
        (
            "float64[n], float64[n]",
            (np.ones(3), np.ones(4)),
            ["argument 1 ('y') of f is float64[4]", "float64[n] (n = 3)"],
        ),
        (
            "float64[n], float64[n]",
            (np.ones(3), np.ones(3, int)),
            ["is int64[3]", "nothing is cast", "x.astype(float64)"],
        ),
        ("float64[n], float64[n+1]", (np.ones(3), np.ones(3)), ["is float64[3], but expects float64[n+1] (n = 3)"]),
        ("float64[n+1], float64[n]", (np.ones(3), np.ones(3)), ["float64[3], but expects float64[n"]),
        ("float64[2*n], float64[n]", (np.ones(3), np.ones(1)), ["argument 0 ('x') of f is float64[3]", "2*n"]),
        ("T[n], T[n]", (np.ones(3), np.ones(3, int)), ["int64[3], but expects T[n] (n = 3, T = float64)"]),
        ("float64[*b], float64[*b]", (np.ones((2, 3)), np.ones(3)), ["float64[*b] (*b = [2,3])"]),
        ("float64[3], _", (np.ones(4), 1), ["argument 0 ('x') of f is float64[4], but expects float64[3]"]),
        ("float64[n], _", (np.ones((2, 2)), 1), ["float64[2,2], but expects float64[n]"]),
        ("str[n], _", (np.ones(2), 1), ["float64[2], but expects str[n]"]),
        ("float64[n], _", ("abc", 1), ["str[], but expects float64[n]"]),
        (
            "float64[n], _",
            (None, 1),
            [
                "argument 0 ('x') of op 'f'",
                "a NoneType, cannot become an array: NumPy makes objects of it, but float64 is",
            ],
        ),
        ("float64[n], _", ([[1.0], [2.0, 3.0]], 1), ["argument 0 ('x') of op 'f'", "a list, cannot become an array"]),
    ],
)
def test_wrong_arguments(declared, arguments, words):
    called = []

    def f(x, y):
        called.append(1)
        return 0.0

    op = pyop.op(f, declared + " -> float64[]")
    with pytest.raises(pyop.InputError) as caught:
        op(*arguments)
    for part in [*words, "op 'f' (declared at", f"{__file__}:{line_of(f)}"]:
        assert part in str(caught.value), str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    assert not called


class Odd(Exception):
    def __init__(self, a, b):
        self.parts = a, b

    def __str__(self):
        raise RuntimeError("no text")


class Slotted(Exception):
    __slots__ = ("__notes__",)


class Refuses(ValueError):
    def add_note(self, note):
        raise RuntimeError("no notes")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        KeyError(1),
        Odd(1, 2),
        OSError(2, "gone"),
        StopIteration(3),
        AssertionError(),
        MemoryError(),
        RecursionError("deep"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
        ExceptionGroup("many", [ValueError(1), KeyError(2)]),
    ],
)
def test_the_functions_exception_is_the_same_object_with_one_note(run, error):
    def boom(x, y):
        if x[0] > 0:
            raise error
        return x

    op = pyop.op(boom, "float64[n], int32[m,k] -> float64[n]", name="boom")
    good = np.zeros(2), np.zeros((1, 4), "i4")
    for _ in range(2):
        error.__notes__ = []
        with pytest.raises(type(error)) as caught:
            run(op, np.ones(2), good[1])
        assert caught.value is error
        (note,) = error.__notes__
        assert "'boom'" in note
        assert __file__ in note
        assert "float64[2], int32[1,4]" in note
        names = []
        tb = caught.value.__traceback__
        while tb:
            names.append(tb.tb_frame.f_code.co_name)
            tb = tb.tb_next
        assert names[-1] == "boom"
        np.testing.assert_array_equal(run(op, *good), good[0])
    error.__traceback__ = None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
def test_interrupts_pass_through_without_a_note(run, kind):
    error = kind()

    def stop(x):
        raise error

    with pytest.raises(kind) as caught:
        run(pyop.op(stop, "float64[n] -> float64[n]"), np.ones(2))
    assert caught.value is error
    assert not hasattr(error, "__notes__")


def test_an_exception_that_refuses_notes_still_comes_out():
    error = Refuses("x")

    def boom(x):
        raise error

    with pytest.raises(Refuses) as caught:
        pyop.op(boom, "float64[n] -> float64[n]")(np.ones(2))
    assert caught.value is error


def test_nested_ops_add_one_note_each():
    @pyop.op("float64[n] -> float64[n]")
    def inner(x):
        raise ValueError("deep")

    @pyop.op("float64[n] -> float64[n]")
    def outer(x):
        try:
            return inner(x)
        except ValueError as e:
            error = e
        raise error

    with pytest.raises(ValueError, match="deep") as caught:
        outer(np.ones(2))
    notes = caught.value.__notes__
    assert len(notes) == 2
    assert "inner" in notes[0]
    assert "outer" in notes[1]


def test_an_error_inside_the_function_of_another_op_is_noted_not_reworded():
    inner = pyop.op(lambda x: 1, "float64[n] -> float64[n]", name="inner")
    outer = pyop.op(lambda x: inner(x), "float64[n] -> float64[n]", name="outer")
    with pytest.raises(pyop.OutputError, match="0-th value returned by inner") as caught:
        outer(np.ones(2))
    assert len(caught.value.__notes__) == 1


class Bad:
    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


@pytest.mark.parametrize("where", ["argument", "result"])
def test_errors_while_converting(where):
    error = LookupError("not today")
    op = pyop.op((lambda x: x) if where == "argument" else (lambda x: Bad(error)), "_ -> _")
    with pytest.raises(
        pyop.InputError if where == "argument" else pyop.OutputError, match=r"not today|cannot become"
    ) as caught:
        op(Bad(error) if where == "argument" else 1.0)
    assert caught.value.__cause__ is error
    with pytest.raises(KeyboardInterrupt):
        pyop.op(lambda x: Bad(KeyboardInterrupt()) if where == "result" else x, "_ -> _")(
            Bad(KeyboardInterrupt()) if where == "argument" else 1.0
        )


@pytest.mark.parametrize("name", ["é_ü", "名前"])
def test_names_and_files_of_any_alphabet(name, tmp_path):
    path = tmp_path / f"{name}.py"
    source = f"def {name}(x):\n    return 1\n"
    space = {}
    exec(compile(source, str(path), "exec"), space)
    op = pyop.op(space[name], "float64[n] -> float64[n]")
    with pytest.raises(pyop.OutputError, match=name) as caught:
        op(np.ones(1))
    assert str(path) in str(caught.value)
    with pytest.raises(pyop.InputError, match=name):
        op(1)


def test_a_failed_call_leaves_nothing_behind():
    class Marked(np.ndarray):
        pass

    def boom(x):
        raise ValueError("x")

    for op in (
        pyop.op(boom, "float64[n] -> float64[n]"),
        pyop.op(lambda x: 1, "float64[n] -> float64[n]"),
        pyop.op(lambda x: (x, 1), "float64[n] -> float64[n], float64[]"),
        pyop.op(lambda x: x, "int32[n] -> _"),
    ):
        owner = np.ones(3).view(Marked)
        alive = weakref.ref(owner)
        with pytest.raises(ValueError):
            op(owner)
        del owner
        gc.collect()
        assert alive() is None
