"""What a script defines, on workers of every kind: cloudpickle under any name, joblib, processes that are spawned."""

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cloudpickle")

import pyop

SCRIPT = """
import sys
import numpy as np, pyop

plain = pyop.compile(lambda x: x * 2)

@pyop.op("float64[n] -> float64[n]")
def times(x, *, k=2):
    if np.any(x < 0):
        raise ValueError("negative")
    return x * k

@times.vjp
def _(ct, x, *, k):
    return ct * k

@pyop.compile
def twice(x):
    return times(x) * 2

def helper(x):
    return x * Scale.factor

class Scale(pyop.Function):
    factor = 3

    @staticmethod
    def forward(ctx, x):
        return helper(x)

    @staticmethod
    @pyop.autograd.once_differentiable
    def backward(ctx, g):
        return g * Scale.factor

class Scaled(Scale):
    @staticmethod
    def backward(ctx, g):
        return g * 30.0

def slope(x, function):
    leaf = pyop.Tensor(x, requires_grad=True)
    function.apply(leaf).backward(np.ones_like(x))
    return leaf.grad.numpy()

def slopes(x):
    return slope(x, Scale), slope(x, Scaled)

def failing(x):
    return pyop.trace(lambda x: times(x - 10), "float64[n]").compile()(x)

graph = pyop.trace(lambda x: times(x, k=3), "float64[n]")
times.unit = twice.unit = "metre"
THINGS = {
    "plain": plain,
    "times": times,
    "twice": twice,
    "plan": graph.compile(),
    "apply": Scale.apply,
    "applied": Scaled.apply,
    "slopes": slopes,
    "gradient": pyop.grad(lambda x: np.sum(times(x, k=5))),
}
"""

X = np.arange(3.0)
EXPECTED = {
    "plain": 2 * X,
    "times": 2 * X,
    "twice": 4 * X,
    "plan": 3 * X,
    "apply": 3 * X,
    "applied": 3 * X,
    "slopes": ([3.0, 3.0, 3.0], [30.0, 30.0, 30.0]),
    "gradient": [5.0, 5.0, 5.0],
}


def run(folder, program, name="script.py"):
    """A script in a process of its own; what it prints."""
    (folder / name).write_text(SCRIPT + program)
    path = ":".join([str(folder), *(entry for entry in sys.path if entry)])
    done = subprocess.run(
        [sys.executable, str(folder / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy_of_cloudpickle(folder):
    """As Ray and older joblib have one: a package of another name."""
    home = Path(importlib.util.find_spec("cloudpickle").origin).parent
    inside = folder / "vendor" / "externals" / "cloudpickle"
    shutil.copytree(home, inside)
    for parent in (inside.parent, inside.parent.parent):
        (parent / "__init__.py").touch()
    for file in inside.glob("*.py"):
        text = file.read_text()
        for old in ("from cloudpickle", "import cloudpickle\n"):
            text = text.replace(f"\n{old}", f"\n{old.replace('cloudpickle', 'vendor.externals.cloudpickle')}")
        file.write_text(text)
    return "vendor.externals.cloudpickle"


@pytest.mark.parametrize("kind", ["cloudpickle", "a copy of it"])
def test_what_a_script_defines_is_sent_along(kind, tmp_path, monkeypatch):
    name = "cloudpickle" if kind == "cloudpickle" else copy_of_cloudpickle(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    program = f"""
import {name} as cloudpickle, pickle
with open({str(tmp_path / "sent")!r}, "wb") as file:
    every = THINGS | {{"graph": graph, "Scale": Scale}}
    pickle.dump({{key: cloudpickle.dumps(thing) for key, thing in every.items()}}, file)
assert pickle.loads(pickle.dumps(times)) is times and pickle.loads(pickle.dumps(Scale.apply)) is Scale.apply
"""
    run(tmp_path, program)
    sent = pickle.loads((tmp_path / "sent").read_bytes())
    for key, expected in EXPECTED.items():
        np.testing.assert_array_equal(pickle.loads(sent[key])(X), expected, err_msg=key)
    script = str(tmp_path / "script.py")
    lines = SCRIPT.splitlines()
    made = lines.index('graph = pyop.trace(lambda x: times(x, k=3), "float64[n]")') + 1
    assert [node.origin for node in pickle.loads(sent["graph"]).nodes][1] == f"{script}:{made}"
    declared = lines.index('@pyop.op("float64[n] -> float64[n]")') + 1
    assert pickle.loads(sent["times"]).origin == f"{script}:{declared}"
    with pytest.raises(ValueError, match="negative") as error:
        pickle.loads(sent["plan"])(-X)
    assert f"(created at {script}:{made})" in error.value.__notes__[0]
    assert pickle.loads(sent["times"]).unit == pickle.loads(sent["twice"]).unit == "metre"
    received = pickle.loads(sent["Scale"])
    assert (received.factor, received.__module__) == (3, "__main__")
    leaf = pyop.Tensor(X, requires_grad=True)
    received.apply(leaf).backward(np.ones(3), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        leaf.grad.backward(np.ones(3))


WORKERS = {
    "joblib": """
    from joblib import Parallel, delayed
    def everywhere(function, *args):
        return Parallel(n_jobs=2)(delayed(function)(*args) for _ in range(2))
""",
    "spawn": """
    import multiprocessing
    pool = multiprocessing.get_context("spawn").Pool(2)
    def everywhere(function, *args):
        return [pool.apply(function, args) for _ in range(2)]
""",
}


@pytest.mark.parametrize("kind", WORKERS)
def test_workers_call_what_a_script_defines(kind, tmp_path):
    if kind == "joblib":
        pytest.importorskip("joblib")
    things = "{key: thing for key, thing in THINGS.items() if key not in ('plain', 'gradient')}"
    if kind == "joblib":
        things = "THINGS"
    program = f"""
if __name__ == "__main__":
    import pickle, traceback
{WORKERS[kind]}
    found = {{key: everywhere(thing, np.arange(3.0)) for key, thing in {things}.items()}}
    with open({str(tmp_path / "found")!r}, "wb") as file:
        pickle.dump(found, file)
    try:
        everywhere(failing, np.arange(3.0))
    except ValueError as error:
        print("".join(traceback.format_exception(error)))
"""
    said = run(tmp_path, program)
    found = pickle.loads((tmp_path / "found").read_bytes())
    assert len(found) == (8 if kind == "joblib" else 6)
    for key, results in found.items():
        for result in results:
            np.testing.assert_array_equal(result, EXPECTED[key], err_msg=key)
    line = SCRIPT.splitlines().index('    return pyop.trace(lambda x: times(x - 10), "float64[n]").compile()(x)') + 1
    # The cloudpickle inside the newest joblib sends code without the name of its file.
    files = (tmp_path / "script.py", *(["<dynamic-code>"] if kind == "joblib" else []))
    assert any(f"(created at {file}:{line})" in said for file in files), said


def test_modules_that_are_registered_go_by_value(tmp_path, monkeypatch):
    import cloudpickle

    (tmp_path / "made_elsewhere.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("made_elsewhere")
    by_path = {key: cloudpickle.dumps(getattr(module, key)) for key in ("times", "twice", "Scale")}
    cloudpickle.register_pickle_by_value(module)
    by_value = {key: cloudpickle.dumps(getattr(module, key)) for key in ("times", "twice", "Scale")}
    cloudpickle.unregister_pickle_by_value(module)
    monkeypatch.delitem(sys.modules, "made_elsewhere")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    importlib.invalidate_caches()
    np.testing.assert_array_equal(pickle.loads(by_value["times"])(X), 2 * X)
    np.testing.assert_array_equal(pickle.loads(by_value["twice"])(X), 4 * X)
    np.testing.assert_array_equal(pickle.loads(by_value["Scale"]).apply(X), 3 * X)
    for sent in by_path.values():
        with pytest.raises(ModuleNotFoundError, match="made_elsewhere"):
            pickle.loads(sent)
