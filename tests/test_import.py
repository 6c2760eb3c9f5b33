"""`import pyop` needs NumPy alone, and costs little more: most of pyop is loaded when somebody asks for it."""

import ast
import importlib
import json
import os
import statistics
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest

import pyop
from pyop import _core, _tree
from pyop.saving import moved

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


# What `import pyop` loads: what the first pyop.compile needs, and little else. Whoever adds a room here, or a module of
# the standard library, adds to the time of every process: import it where it is used, or by one of the ways that
# pyop/deferred.py names.
ROOMS = {
    "_core",
    "_tree",
    "compiling",
    "config",
    "containers",
    "declare",
    "deferred",
    "functions",
    "graph",
    "interrupts",
}
ROOMS |= {"refusals", "saving", "tracing", "up_calls"}
MOST_MODULES = 66
STANDARD = {"__future__", "atexit", "gc"}


def test_import_loads_few_modules(tmp_path):
    (tmp_path / "pyop").mkdir()  # without the hook of an editable install, which imports much itself
    for path in (*Path(pyop.__file__).parent.iterdir(), Path(_core.__file__), Path(_tree.__file__)):
        if not (link := tmp_path / "pyop" / path.name).exists():
            link.symlink_to(path)
    folders = [str(tmp_path), str(Path(np.__file__).parents[1])]

    def modules(name):
        code = f"import sys; sys.path[:0] = {folders!r}; import {name}; print(*sorted(sys.modules))"
        done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    loaded, before = modules("pyop"), modules("numpy")
    ours = {name for name in loaded if name.startswith("pyop.")} - set(moved.HIDDEN)
    assert {name.split(".")[1] for name in ours} == ROOMS
    assert len(ours) <= MOST_MODULES
    theirs = {name for name in loaded - before if name.partition(".")[0] in sys.stdlib_module_names}
    assert {name for name in theirs if not name.startswith("_") or name in STANDARD} <= STANDARD
    assert [name for name in loaded - before if name.startswith("numpy")] == []


@pytest.mark.parametrize("state", ["enable", "disable"])
def test_the_collector_is_afterwards_as_it_was(state):
    assert fresh(f"import gc; gc.{state}(); import pyop; print(gc.isenabled())") == f"{state == 'enable'}\n"
    broken = "import gc, sys; sys.modules['pyop._core'] = None\ntry: import pyop\nexcept ImportError: "
    assert fresh(f"{broken}print(gc.isenabled())") == "True\n"


def declared_imports():
    """The names that type checkers see, and the modules they see them in."""
    (block,) = [node for node in ast.parse(Path(pyop.__file__).read_text()).body if isinstance(node, ast.If)]
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_names_that_are_loaded_later_are_those_that_type_checkers_see():
    homes = {name: module for name, module in declared_imports().items() if module is not None}
    assert homes == pyop._HOMES
    for name, module in homes.items():
        assert getattr(pyop, name) is getattr(importlib.import_module(f"pyop.{module}"), name)
    code = "import pyop; from pyop import grad; print(pyop.grad is grad, grad.__doc__[:12], pyop.Op.vjp.__name__)"
    assert fresh(code) == "True Return a fun vjp\n"
    code = "from pyop import *; print(callable(check), callable(profile), autograd.Tensor is Tensor)"
    assert fresh(code) == "True True True\n"


def test_modules_do_not_take_the_place_of_functions_of_their_names():
    code = "import sys, pyop, pyop.check, pyop.profile, pyop.ops.op, pyop.op; import pyop.py_func\n"
    code += "from pyop.profile import Profile; assert Profile is pyop.Profile\n"
    code += "assert not hasattr(sys.modules['pyop.op'], '__file__')\n"
    code += "print(*(type(getattr(pyop, name)).__name__ for name in ('check', 'profile', 'op', 'py_func')))\n"
    assert fresh(code).split() == ["function"] * 4


FIRST_USES = """
import sys, threading
import numpy as np, pyop
sys.setswitchinterval(1e-6)
begin = threading.Barrier(8)
found = []
def use(k):
    value = pyop.Graph().input("float64[3]")
    begin.wait()
    if k % 2:
        found.append(float(pyop.grad(lambda x: np.sum(x[1:] ** 3))(np.full(3, 2.0))[1]) == 12.0)
    else:
        t = pyop.Tensor(np.ones(2), requires_grad=True)
        np.sum(np.exp(t[::-1]) * t).backward()
        found.append(len(value) == 3 and t.grad.shape == (2,) and str(value).startswith("<pyop.Value"))
threads = [threading.Thread(target=use, args=(k,)) for k in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found == [True] * 8)
"""


def test_threads_that_use_a_part_first_at_the_same_time_all_get_it():
    for _ in range(3):
        assert fresh(FIRST_USES) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_child_can_use_a_part_that_its_parent_never_used():
    code = "import os, numpy as np, pyop\nif child := os.fork(): print(os.waitpid(child, 0)[1])\n"
    code += "else: os._exit(0 if pyop.grad(lambda x: np.sum(x * x))(np.ones(2))[0] == 2.0 else 1)\n"
    assert fresh(code) == "0\n"


def test_a_first_use_while_the_interpreter_ends_is_an_error_at_most():
    code = "import sys, pyop\nclass Late:\n    def __init__(self, use): self.use = use\n"
    code += "    def __del__(self):\n        try: self.use()\n        except Exception: pass\n"
    code += "value = pyop.Graph().input('float64[3]')\n"
    for k, use in enumerate(("len(value)", "str(value)", "pyop.grad", "pyop._core.up_call('spread')()")):
        code += f"at_{k} = Late(lambda value=value, pyop=pyop: {use}); sys.held_{k} = Late(at_{k}.use)\n"
    fresh(code)


def refused(tmp_path, before):
    """The error of `import pyop` from a copy without extension modules, after the statements `before`."""
    (tmp_path / "pyop").mkdir(exist_ok=True)
    for path in Path(pyop.__file__).parent.glob("*.py"):
        (tmp_path / "pyop" / path.name).write_text(path.read_text())
    (tmp_path / "pyop" / "_core.cpython-310-x86_64-linux-gnu.so").touch()
    code = f"import sys, types; sys.path[:0] = [{str(tmp_path)!r}, {str(Path(np.__file__).parents[1])!r}]; {before}\n"
    code += "try: import pyop\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    return line


def test_what_is_not_supported_is_told_in_a_sentence(tmp_path):
    where = "CPython 3.11 or newer on Linux with glibc"
    said = refused(tmp_path, "sys.implementation.name = 'pypy'")
    assert where in said
    assert "this is pypy with Python 3." in said
    said = refused(tmp_path, "sys.version_info = (3, 10, 4, 'final', 0)")
    assert where in said
    assert "this is cpython with Python 3.10" in said
    old = "numpy = sys.modules['numpy'] = types.ModuleType('numpy'); "
    old += "numpy.__version__, numpy.__file__ = '1.26.4', '/old'"
    said = refused(tmp_path, old)
    assert said.startswith("pyop needs NumPy 2.0 or newer, and this is 1.26.4 (/old); install it:")
    said = refused(tmp_path, "sys.modules['numpy'] = None")
    assert said.startswith("pyop needs NumPy 2.0 or newer, which cannot be imported")
    said = refused(tmp_path, "")
    assert "is not for this interpreter" in said
    assert "it has _core.cpython-310-x86_64-linux-gnu.so; " in said
    (tmp_path / "pyop" / ("_core" + EXTENSION_SUFFIXES[0])).write_bytes(b"of another processor")
    said = refused(tmp_path, "")
    assert "cannot be loaded here" in said
    assert f"{where}, installed by" in said


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


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this build always has the GIL")
def test_a_free_threaded_build_has_the_gil_on_or_no_pyop():
    code = "import sys, pyop; print(sys._is_gil_enabled())"
    run = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    quiet = subprocess.run([sys.executable, "-X", "gil=1", "-W", "error", "-c", code], **run)
    assert quiet.stdout == "True\n", quiet.stderr
    refused_there = subprocess.run([sys.executable, "-X", "gil=0", "-c", code], **run)
    assert "ImportError: pyop cannot be imported with the GIL off" in refused_there.stderr
