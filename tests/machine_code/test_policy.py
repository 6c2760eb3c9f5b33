"""When machine code is made, and how that is told."""

from __future__ import annotations

import numpy as np
import pytest

import pyop

pytest.importorskip("llvmlite", reason="the jit extra is not installed")


def decay(x):
    total = x[0] * 0.0
    for k in range(len(x)):
        total = total * 0.5 + x[k]
    return total


def states(f, *given):
    return [code.state for _, code in f.plan_for(*given)._machine_code()]


X = np.arange(2000.0)


def test_now_and_off():
    now, off = pyop.compile(decay, machine_code="now"), pyop.compile(decay, machine_code="off")
    assert now(X) == off(X) == decay(X)
    assert "ready" in states(now, X)
    assert set(states(off, X)) == {"cold"}
    assert "operations, machine code" in str(now.plan_for(X).explain())
    assert "operations, interpreted" in str(off.plan_for(X).explain())


def test_hot_is_made_in_the_background(run):
    program = """
        f = pyop.compile(decay)
        f(x, 10000)
        print(states(f, x, 10000) - {"cold"}, "llvmlite" in sys.modules)
        until(lambda: f(x, 10000) is not None and "ready" in states(f, x, 10000))
        print(f(x, 10000) == decay(x, 10000))
    """
    assert run(program) == "set() False\nTrue\n"
    assert run("f = pyop.compile(decay)\nfor _ in range(800): f(x, 10000)\nprint(states(f, x, 10000))",
               PYOP_MACHINE_CODE="off") == "{'cold'}\n"  # fmt: skip
    assert (
        run("f = pyop.compile(decay); f(x, 10000); print('ready' in states(f, x, 10000))", PYOP_MACHINE_CODE="now")
        == "True\n"
    )


def test_without_llvmlite(run):
    program = """
        sys.modules["llvmlite"] = None
        import importlib.machinery as machinery
        find = machinery.PathFinder.find_spec
        machinery.PathFinder.find_spec = lambda name, *rest: None if name == "llvmlite" else find(name, *rest)
        del sys.modules["llvmlite"]
        f = pyop.compile(decay, machine_code="now")
        print(f(x, 10000) == decay(x, 10000), "pyop-core[jit]" in str(f.plan_for(x, 10000).explain()))
    """
    assert run(program) == "True True\n"


def test_what_it_is_made_of():
    f = pyop.compile(decay, machine_code="now")
    f(X)
    plan = f.plan_for(X)
    assert "define i32 @tape(" in plan.machine_code()
    assert "vaddsd" in plan.machine_code(assembly=True) or "addsd" in plan.machine_code(assembly=True)


def test_short_arrays_are_not_compiled_and_say_so():
    def rows(x, y):
        total = np.zeros(3)
        for k in range(len(x)):
            total = total * y + x[k]
        return total

    given = np.ones((500, 3)), np.full(3, 0.5)
    f = pyop.compile(rows, machine_code="now")
    assert f(*given).tobytes() == rows(*given).tobytes()
    assert "interpreted: it computes with short arrays" in str(f.plan_for(*given).explain())


def test_names_of_policies(run):
    with pytest.raises(ValueError, match="must be 'off', 'hot' or 'now'"):
        pyop.compile(decay, machine_code="always")
    with pytest.raises(AssertionError, match="PYOP_MACHINE_CODE is off, hot or now, not 'on'"):
        run("", PYOP_MACHINE_CODE="on")
