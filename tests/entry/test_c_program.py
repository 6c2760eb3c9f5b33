"""The header in the hands of a C compiler: threads that Python does not know, while it runs and while it ends."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pyop

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler")
NATIVE = 'lambda x: 2 * x + 1, "float64[]"'
# NumPy computes it, with the GIL.
PYTHON = 'lambda x: pyop.py_func(lambda v: 2 * v + 1, [x], "float64[]"), "float64[]"'


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("caller") / "caller.so"
    source = Path(__file__).with_name("caller.c")
    flags = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [CC, *flags, "-shared", "-fPIC", "-I", pyop.get_include(), source, "-o", path, "-lpthread", "-lm"]
    subprocess.run(command, check=True)
    return path


def load(library: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(library)
    loaded.run_threads.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    loaded.run_threads.restype = ctypes.c_long
    loaded.describes.argtypes = [ctypes.c_void_p]
    return loaded


def plan_of(text: str):
    return eval(f"pyop.trace({text})", {"pyop": pyop}).compile()


@pytest.mark.parametrize(("text", "calls"), [(NATIVE, 20_000), (PYTHON, 300)], ids=["native", "Python"])
def test_foreign_threads(library, text, calls):
    plan = plan_of(text)
    loaded = load(library)
    assert loaded.describes(plan.address)
    assert loaded.run_threads(plan.address, 8, calls, None) == 0
    # All the same while this thread has the GIL and runs Python.
    assert ctypes.PyDLL(str(library)).run_threads is not None
    assert sum(np.arange(1000)) == 499500


def test_native_threads_while_the_gil_is_held(library):
    """A call that asked for the GIL would wait for ever."""
    plan = plan_of(NATIVE)
    run = ctypes.PyDLL(str(library)).run_threads
    run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p], ctypes.c_long
    assert run(plan.address, 8, 1000, None) == 0


def test_failures_on_foreign_threads(library):
    plan = plan_of('lambda x: pyop.py_func(lambda v: 1 / 0, [x], "float64[]"), "float64[]"')
    assert load(library).run_threads(plan.address, 4, 50, None) == 200


@pytest.mark.parametrize("text", [NATIVE, PYTHON], ids=["native", "Python"])
@pytest.mark.parametrize("end", ["", "del plan", "sys.exit(0)", "raise SystemExit"])
def test_threads_that_call_while_python_ends(library, text, end):
    program = f"""
        import ctypes, sys, time
        import pyop
        plan = pyop.trace({text}).compile()
        kept = plan.capsule
        library = ctypes.CDLL({str(library)!r})
        library.start_threads.argtypes = [ctypes.c_void_p, ctypes.c_int]
        assert library.start_threads(plan.address, 4) == 0
        time.sleep(0.05)
        {end}
    """
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)], capture_output=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("text", "code"), [(NATIVE, 10), (PYTHON, 11)], ids=["native", "Python"])
def test_a_call_behind_the_end_of_python(library, text, code):
    program = f"""
        import ctypes
        import pyop
        plan = pyop.trace({text}).compile()
        library = ctypes.CDLL({str(library)!r})
        library.call_at_exit.argtypes = [ctypes.c_void_p]
        library.call_at_exit(plan.address)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (code, b"")
