"""`import pyop` needs NumPy alone, and costs little more."""

import json
import statistics
import subprocess
import sys

import pytest

import pyop
from pyop import _core

OPTIONAL = ("rich", "sklearn", "scipy", "pybind11", "Cython", "onnx", "torch", "jax", "tensorflow", "dask", "pytest")


def fresh(code: str) -> str:
    """What `code` prints in a fresh interpreter, warnings being errors."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_but_numpy():
    code = "import sys, json, pyop; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    before = "import sys, json, numpy; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    new = set(json.loads(fresh(code))) - set(json.loads(fresh(before)))
    cython_runtime = {name for name in new if name.startswith(("cython_runtime", "_cython_"))}  # made, not imported
    stdlib = {*sys.stdlib_module_names, "_missing_stdlib_info"}  # the last is made when CPython 3.15 is built
    assert new - cython_runtime - stdlib == {"pyop"}


def test_import_works_where_no_optional_package_can_be_imported():
    blocked = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))"
    assert fresh(f"{blocked}; import pyop; print(pyop.__version__)").strip()


def test_optional_parts_are_attributes_that_load_when_asked_for():
    code = "import inspect, sys, pyop; assert 'onnx' in dir(pyop) and 'onnx' not in sys.modules; "
    assert fresh(code + "print(pyop.onnx.export.__name__, pyop.onnx is sys.modules['pyop.onnx'])") == "export True\n"
    blocked = "import sys; sys.modules['onnx'] = None; import inspect, pyop; "
    said = fresh(blocked + "inspect.getmembers(pyop); print(getattr(pyop, 'onnx', 'absent'))\ntry: pyop.onnx\n"
                 "except AttributeError as error: print(error)")  # fmt: skip
    assert said.startswith("absent\npyop.onnx needs the package 'onnx'")
    assert fresh(code + "print(hasattr(pyop, 'onxx'))") == "False\n"


def test_dir_shows_the_public_names_only():
    names = json.loads(fresh("import json, pyop; import pyop.onnx, pyop.scipy; print(json.dumps(dir(pyop)))"))
    assert names == sorted([*pyop.__all__, "onnx", "scipy"])
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    assert [name for name in names if not hasattr(pyop, name)] == []


def test_import_time_over_numpy(record_property):
    """Reported, not judged: the machine decides how long a process takes to start."""
    clock = "import time; begin = time.process_time(); import {}; print(time.process_time() - begin)"
    ratios = [float(fresh(clock.format("pyop"))) / float(fresh(clock.format("numpy"))) for _ in range(5)]
    ratio = statistics.median(ratios)
    record_property("import pyop over import numpy", round(ratio, 2))
    print(f"import pyop costs {ratio:.2f} times import numpy (budget 1.3)")


SUB_INTERPRETERS = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
program = '''
import importlib.util
try:
    spec = importlib.util.spec_from_file_location("pyop._core", {core!r})
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError as error:
    print(error, flush=True)
'''
def run(interpreter):
    if hasattr(interpreters, "exec"):
        failed = interpreters.exec(interpreter, program)
        assert failed is None, failed
    else:
        interpreters.run_string(interpreter, program)
    interpreters.destroy(interpreter)
{before}
if hasattr(interpreters, "new_config"):
    run(interpreters.create("legacy"))
    run(interpreters.create("isolated"))
else:
    run(interpreters.create(isolated=False))
    run(interpreters.create(isolated=True))
"""


@pytest.mark.parametrize("before", ["", "import pyop"])
def test_a_sub_interpreter_is_told_that_it_cannot_have_pyop(before):
    said = fresh(SUB_INTERPRETERS.format(before=before, core=_core.__file__)).splitlines()
    assert len(said) == 2
    for line in said:  # an isolated one is told by CPython, from 3.12 on
        assert "sub-interpreter" in line or "subinterpreters" in line
