"""Measurements in a process of their own: with another allocator's state, on one core, or fresh.

What decides the time of medium arrays is whether the C library gives their memory back to the system when they die:
in an ordinary process it does, and the next array pays a page fault for every 4 KiB. "Warm" has it keep all memory.
Both can only be chosen by the environment, before a process starts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STATES: dict[str, Mapping[str, str]] = {
    "ordinary": {},
    "warm": {"MALLOC_MMAP_THRESHOLD_": str(1 << 40), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)},
}
# One thread each for those who start threads of their own accord.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def call(
    where: str,
    arguments: Mapping[str, Any],
    *,
    state: str = "ordinary",
    one_core: bool = True,
    limit: float | None = None,
) -> Any:
    """What ``module:function`` of this package returns in a new process; arguments and result go through JSON.

    One that takes longer than `limit` seconds is ended, with `subprocess.TimeoutExpired`.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= STATES[state]
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its modules compiled
    if one_core:
        environment |= ONE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        # PyTensor would remember what it compiled in an earlier run.
        environment.setdefault("PYTENSOR_FLAGS", f"base_compiledir={folder}")
        command = [sys.executable, "-m", "benchmarks.child", where, json.dumps(arguments), str(path)]
        if one_core:
            command.append("--one-core")
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=limit
        )
        if done.returncode:
            raise RuntimeError(f"{where} failed in a process of its own:\n{done.stderr}")
        return json.loads(path.read_text())


def allocator() -> dict[str, str]:
    """What this process was told about its allocator."""
    return {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}


def main() -> int:
    """The other side of `call`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.child", description=main.__doc__)
    parser.add_argument("where")
    parser.add_argument("arguments", type=json.loads)
    parser.add_argument("path", type=Path)
    parser.add_argument("--one-core", action="store_true")
    args = parser.parse_args()
    if args.one_core and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    module, _, function = args.where.partition(":")
    result = getattr(importlib.import_module(f"benchmarks.{module}"), function)(**args.arguments)
    args.path.write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
