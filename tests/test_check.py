"""`pyop.check` and ``python -m pyop check``: what they find, and the exit status."""

import subprocess
import sys

import numpy as np
import pytest

import pyop

MODULE = """
import numpy as np, pyop

@pyop.op("float64[n], float64[n,n+1], int32[] -> float64[n]")
def good(x, y, k):
    return x * np.sum(y, axis=1) * k

@good.vjp
def _(ct, x, y, k):
    return ct * k * np.sum(y, axis=1), np.broadcast_to((ct * k * x)[:, None], y.shape), None

@good.jvp
def _(tx, ty, tk, x, y, k):
    return k * (tx * np.sum(y, axis=1) + x * np.sum(ty, axis=1))

kept = np.zeros(3)

@pyop.op("float64[3] -> float64[3]")
def keeps(x):
    kept[:] = x
    return kept

calls = []

@pyop.op("float64[n] -> float64[n]")
def counts(x):
    calls.append(0)
    return x + len(calls)

@pyop.op("float64[n] -> float64[n,n]")
def misshapen(x):
    return x

@pyop.op("complex128[n] -> complex128[n]")
def square(x):
    return x * x

@square.vjp
def _(ct, x):
    return ct * 2 * x  # should be the conjugate

@pyop.op("complex128[n] -> complex128[n]")
def cube(x):
    return x ** 3

@cube.vjp
def _(ct, x):
    return ct * np.conj(3 * x * x)

@cube.jvp
def _(t, x):
    return 4 * t * x * x

@pyop.op("float64[n] -> float64[n]", stateful=True)
def declared(x):
    calls.append(0)
    return x + len(calls)
"""

FOUND = {
    "good": {},
    "keeps": {"aliasing": "same memory"},
    "counts": {"purity": "declare the op stateful=True"},
    "misshapen": {"contract": r"float64[n,n]"},
    "square": {"gradient": "reverse mode does not agree"},
    "cube": {"gradient": "forward mode does not agree"},
    "declared": {},
}


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "checked_ops.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "checked_ops", raising=False)
    import checked_ops

    yield checked_ops
    sys.modules.pop("checked_ops", None)


@pytest.mark.parametrize("name", FOUND)
def test_report(module, name):
    report = pyop.check(getattr(module, name))
    failed = {finding.what: finding.text for finding in report.findings if finding.verdict == "FAIL"}
    assert failed.keys() == FOUND[name].keys(), report
    for what, words in FOUND[name].items():
        assert words in failed[what]
        assert f"{what} " in str(report)
    assert bool(report) is (not failed)


def test_one_wrong_element_is_named():
    @pyop.op("float64[4] -> float64[4]")
    def f(x):
        return x * x

    f.vjp(lambda ct, x: 2 * ct * x + np.array([0, 0, 1e-3, 0]) * ct)
    (finding,) = (f for f in pyop.check(f, np.ones(4)).findings if f.what == "gradient")
    assert finding.verdict == "FAIL"
    f.vjp(lambda ct, x: 2 * ct * x)
    assert {f.what for f in pyop.check(f, np.ones(4)).findings if f.verdict == "FAIL"} == {"pickling"}


def test_changed_arguments_are_found():
    @pyop.op("float64[n] -> float64[n]")
    def f(x):
        base = x.base if x.base is not None else x
        base[0] = 7.0
        return x * 1

    (finding,) = (f for f in pyop.check(f, np.ones(3)).findings if f.verdict == "FAIL" and f.what != "pickling")
    assert "argument 0" in finding.text


def test_undeclared_ops_need_an_example():
    f = pyop.op(lambda x: x)
    with pytest.raises(TypeError, match="give check an example"):
        pyop.check(f)
    with pytest.raises(TypeError, match="takes an op, got function"):
        pyop.check(lambda x: x)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["checked_ops:good"], 0, "op 'good': passed"),
        (
            ["checked_ops:good", "--example", "np.ones(2)", "--example", "np.ones((2, 3))", "--example", "np.int32(3)"],
            0,
            "passed",
        ),
        (["checked_ops:good", "checked_ops:keeps"], 1, "op 'keeps': FAILED"),
        (["checked_ops"], 1, "op 'declared': passed"),
        (["checked_ops:nothing"], 2, "no attribute 'nothing'"),
        (["not_a_module"], 2, "No module named"),
    ],
)
def test_command(module, tmp_path, arguments, status, words):
    done = subprocess.run(
        [sys.executable, "-m", "pyop", "check", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert words in done.stdout + done.stderr
