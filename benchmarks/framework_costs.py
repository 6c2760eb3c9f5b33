"""What a call of one op costs in each framework, next to the binding that people write there by hand.

    python -m benchmarks.framework_costs --write --python OTHER/bin/python

prints one table, and writes it into docs/frameworks.md. Each `--python` is the interpreter of another environment, for
frameworks that do not live in one: they are measured there. A framework that is in none of them keeps the lines that an
earlier run has written, and is named if there are none.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .child import ROOT
from .framework_bindings import jax_by_hand, onnxruntime_sessions, torch_by_hand
from .frameworks_tfpt import WARM, declared, pytensor_rows, tensorflow_rows
from .harness import Harness, Row, Statement

PAGE = ROOT / "docs" / "frameworks.md"
BEGIN, END = "<!-- costs: written by python -m benchmarks.framework_costs --write -->", "<!-- end of costs -->"
HEAD = [
    "| framework | a call | 8 numbers | 100,000 numbers |",
    "|---|---|---|---|",
]
SIZES = (8, 100_000)
NODES = 20  # of ONNX Runtime: what one more of them costs

Cost = dict[str, Any]  # framework, version, what, size, ours and hand in µs, ratio


def _cost(framework: str, what: str, size: int, ours: float, hand: float, ratio: float) -> Cost:
    return {
        "framework": framework,
        "version": _version(framework),
        "what": what,
        "size": size,
        "ours": ours,
        "hand": hand,
        "ratio": ratio,
    }


def _version(framework: str) -> str:
    for name in _PACKAGES[framework]:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def _compared(harness: Harness, framework: str, what: str, size: int, code: str, names: Sequence[Any]) -> Cost:
    """`names`: those of the code for the wrapped op, and for the binding by hand."""
    # XLA computes on threads of its own; torch, backward too, on the thread that calls.
    clock = time.thread_time_ns if framework == "torch" else time.perf_counter_ns
    times = harness.compare(
        {which: Statement(code, each, 2) for which, each in zip(("ours", "hand"), names, strict=True)},
        clock=clock,
        warm=WARM,
    )
    ours, hand = times.ns("ours") / 1e3, times.ns("hand") / 1e3
    return _cost(framework, what, size, ours, hand, times.ratio("ours", "hand"))


def _torch(harness: Harness) -> list[Cost]:
    import torch

    from pyop.interop.torch import wrap

    torch.set_num_threads(1)
    library, by_hand = torch_by_hand()
    ours, found = wrap(declared()), []
    for size in SIZES:
        x = torch.linspace(0, 1, size, dtype=torch.float64)
        for what, code, given in (
            ("forward", "f(x)", x),
            ("forward and backward", "f(x).backward()", x.clone().requires_grad_()),
        ):
            names = [{"f": f, "x": given, "library": library} for f in (ours, by_hand)]
            found.append(_compared(harness, "torch", what, size, code, names))
    return found


def _jax(harness: Harness) -> list[Cost]:
    import jax
    import jax.numpy as jnp

    from pyop.interop.jax import wrap

    jax.config.update("jax_enable_x64", True)
    pair, found = (wrap(declared()), jax_by_hand()), []
    for size in SIZES:
        x = jnp.linspace(0, 1, size)
        for what, code, made in (
            ("forward, under jit", "f(x).block_until_ready()", jax.jit),
            (
                "forward and backward, under jit",
                "f(x)[1].block_until_ready()",
                lambda f: jax.jit(jax.value_and_grad(f)),
            ),
        ):
            names = [{"f": made(f), "x": x} for f in pair]
            found.append(_compared(harness, "jax", what, size, code, names))
    return found


def _onnxruntime(harness: Harness) -> list[Cost]:
    """What one more node costs a run, next to a node of onnxruntime-extensions."""
    found = []
    for size in SIZES:
        feeds = {"x": np.linspace(0, 1, size)}
        sessions = {
            f"{which}, {nodes}": session
            for nodes in (1, NODES + 1)
            for which, session in zip(("ours", "hand"), onnxruntime_sessions(declared(), nodes), strict=True)
        }
        statements = {k: Statement("run(None, x)", {"run": s.run, "x": feeds}, 1) for k, s in sessions.items()}
        times = harness.compare(statements, warm=WARM)  # on the thread that calls, as the sessions have one
        each = [max(times.over(f"{which}, {NODES + 1}", f"{which}, 1"), 1) / NODES / 1e3 for which in ("ours", "hand")]
        found.append(_cost("onnxruntime", "forward, one more node", size, *each, each[0] / each[1]))
    return found


def _of_rows(framework: str, rows: Callable[[Harness], list[Row]]) -> Callable[[Harness], list[Cost]]:
    """The same from rows of a suite."""

    def measured(harness: Harness) -> list[Cost]:
        found = []
        for row in rows(harness):
            told = re.fullmatch(r"op in \w+, (.*), ([\d,]+) numbers", row.what)
            spent = re.fullmatch(r"([\d.]+) µs, by hand ([\d.]+) µs", row.detail)
            if told and spent and row.value is not None:
                what = told[1].replace("value and gradient", "forward and backward").replace("a value", "forward")
                size = int(told[2].replace(",", ""))
                found.append(_cost(framework, what, size, float(spent[1]), float(spent[2]), row.value))
        return found

    return measured


_PACKAGES = {
    "torch": ("torch",),
    "jax": ("jax",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "pytensor": ("pytensor",),
    "onnxruntime": ("onnxruntime",),
}
_NEEDS = {"onnxruntime": ("onnx", "onnxruntime_extensions")}
MEASURES: dict[str, Callable[[Harness], list[Cost]]] = {
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _of_rows("tensorflow", tensorflow_rows),
    "pytensor": _of_rows("pytensor", pytensor_rows),
    "onnxruntime": _onnxruntime,
}


def here(framework: str) -> bool:
    """Whether this environment has what the measurement needs."""
    return all(importlib.util.find_spec(name) for name in (framework, *_NEEDS.get(framework, ())))


def measure(harness: Harness, frameworks: Sequence[str]) -> list[Cost]:
    """The costs in those of the frameworks that are here."""
    found: list[Cost] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for framework in filter(here, frameworks):
            found += MEASURES[framework](harness)
    return found


def run(harness: Harness) -> list[Row]:
    """As a suite: a row for each cost, those of frameworks that are not here not measured."""
    costs = in_process(sys.executable, harness, list(MEASURES))
    rows = [
        Row("B21", f"{cost['framework']} {cost['version']}: {cost['what']}, {cost['size']:,} numbers", "≤ 1.1×",
            cost["ratio"], 1.1, detail=f"{cost['ours']:.1f} µs, by hand {cost['hand']:.1f} µs")
        for cost in costs
    ]  # fmt: skip
    missing = [name for name in MEASURES if not here(name)]
    return rows + [
        Row("B21", f"{name}: an op of 8 and 100,000 numbers", "≤ 1.1×", None, 1.1, detail=f"needs {name}")
        for name in missing
    ]


def in_process(python: str, harness: Harness, frameworks: Sequence[str]) -> list[Cost]:
    """The costs in a new process of an interpreter, with a BLAS of one thread."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "costs.json"
        quick = ["--quick"] * harness.quick
        command = [python, "-m", "benchmarks.framework_costs", "--json", str(path), "--rounds", str(harness.rounds)]
        done = subprocess.run(
            [*command, *quick, "--frameworks", *frameworks],
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{python} -m benchmarks.framework_costs ended with {done.returncode}:\n{done.stderr}")
        found: list[Cost] = json.loads(path.read_text())
        return found


def lines_of(costs: Sequence[Cost]) -> dict[str, list[str]]:
    """The lines of the table, by framework."""
    lines: dict[str, list[str]] = {}
    cells: dict[tuple[str, str, str], dict[int, str]] = {}
    for cost in costs:
        cell = f"{_micro(cost['ours'])}, by hand {_micro(cost['hand'])}: {cost['ratio']:.2f}×"
        cells.setdefault((cost["framework"], cost["version"], cost["what"]), {})[cost["size"]] = cell
    for (framework, known, what), row in cells.items():
        columns = [f"{framework} {known}", what, *(row.get(size, "") for size in SIZES)]
        lines.setdefault(framework, []).append(f"| {' | '.join(columns)} |")
    return lines


def _micro(x: float) -> str:
    return f"{x:.1f} µs" if x < 100 else f"{x:,.0f} µs"


def block(page: str, costs: Sequence[Cost], around: str) -> str:
    """The page with its table written anew; frameworks that were not measured keep their lines."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page has no part between {BEGIN!r} and {END!r}, one of each")
    front, rest = page.split(BEGIN)
    old, back = rest.split(END)
    kept = {
        name: [line for line in old.splitlines() if line.startswith(f"| {name} ") and line not in HEAD]
        for name in MEASURES
    }
    new = lines_of(costs)
    table = [line for name in MEASURES for line in new.get(name) or kept[name]]
    missing = [name for name in MEASURES if name not in new and not kept[name]]
    told = [f"Measured in one run: {', '.join(new)}; {around}."] if new else []
    if new and any(kept[name] and name not in new for name in MEASURES):
        told.append(f"Of an earlier run: {', '.join(name for name in MEASURES if kept[name] and name not in new)}.")
    if missing:
        told.append(f"Not measured: {', '.join(missing)}.")
    parts = [BEGIN, "", *HEAD, *table, "", " ".join(told), "", END]
    return front + "\n".join(parts) + back


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.framework_costs", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into docs/frameworks.md")
    parser.add_argument(
        "--python", action="append", default=[], metavar="P", help="measure there, too; may be repeated"
    )
    parser.add_argument("--json", metavar="F", help="measure in this process, and write the costs to this file alone")
    parser.add_argument("--frameworks", nargs="*", default=list(MEASURES), choices=list(MEASURES), help="these alone")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="short samples: shows that it works")
    args = parser.parse_args(argv)
    harness = Harness(rounds=args.rounds, quick=args.quick)
    if args.json:
        Path(args.json).write_text(json.dumps(measure(harness, args.frameworks)))
        return 0
    costs: list[Cost] = []
    for python in [sys.executable, *args.python]:
        missing = [name for name in args.frameworks if name not in {cost["framework"] for cost in costs}]
        if missing:
            costs += in_process(python, harness, missing)
    lines = lines_of(costs)
    print("\n".join([*HEAD, *(line for each in lines.values() for line in each)]))
    missing = [name for name in args.frameworks if name not in lines]
    if missing:
        print(f"\nNot here: {', '.join(missing)}; --python names the interpreter of an environment that has them.")
    if args.write:
        around = (
            f"{sys.platform}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        )
        PAGE.write_text(block(PAGE.read_text(), costs, around))
    return 0


if __name__ == "__main__":
    sys.exit(main())
