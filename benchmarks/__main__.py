"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from .harness import Harness, Row
from .table import markdown, save, show, surroundings

# Name of the suite (a module of this package with `run(harness) -> list[Row]`) and what it measures.
SUITES = {
    "op_call": "B1: an eager op against the bare function",
    "chain": "B2: a plan of 1000 chained nodes against the hand-written loop",
    "wide": "B3: a plan of 1000 independent nodes; one call of a one-node plan",
    "graph": "B8: building a node, its memory, compile and run at 10^6 nodes",
    "gradients": "B14, B30: a compiled value and gradient against autograd, PyTensor, JAX, and the value alone",
    "expressions": "B4, B5: NumPy expressions as plans against NumPy",
    "peers": "B6: NumPy expressions as plans against numexpr, numba, PyTensor and JAX",
    "edges": "P6: stencils, single numbers, sine, gradients against numexpr, numba, PyTensor, JAX, DaCe and autograd",
    "compile": "B7: a compiled function against its plan; precision='fast' against NumPy",
    "scalars": "B27: compiled functions on ten numbers and on one, over an empty builtin call",
    "first_calls": "B20, B29, P4: the import, first calls, 10^4 nodes compiled; a solve of 300 calls with its tracing",
    "frameworks": "B21, B35: an op wrapped for a framework against what is written for it by hand",
    "programs": "B18: three programs, compiled, against NumPy: an ODE, a Kalman filter, edges in images",
    "handoff": "B9: 64 MiB through an op and through a plan of ten",
    "destroy": "B10: the last reference on a detached thread; destroying 10^6 nodes",
    "autograd": "B11, B12, B13, C14: a Function called, gone through backward, and kept; pyop.vjp of an op",
    "tensors": "T1, T2: an expression on Tensors, forward and backward; built-in operations against the table of rules",
    "numpy_programs": "P1: eleven programs as people write them, compiled, against NumPy",
    "idioms": "P5: 155 expressions of every day, compiled: how many call Python, and their time over NumPy's",
    "kernels": "B24, B25: kernels as people write them (tests/programs), compiled, against NumPy, numba and DaCe",
    "science": "B39: 88 programs as scientists write them (benchmarks/science), compiled: bits, first call, speed",
    "elements": "B38: loops of one operation on elements, every dtype with every operation: how many are slow",
    "machine_code": "B43: loops over single elements: Python, interpreter, machine code, numba",
    "varying": "B37, B39: compiled functions whose numbers, shapes or texts differ in each call, over the plain ones",
    "siblings": "B40: results in containers over an array's; first calls on new instances and of new closures",
    "stencils": "B26: steps of stencils, compiled, against numba's explicit loops and NumPy",
    "arrays": "B17: arrays of torch, JAX, Arrow and others as arguments of an op, over an ndarray",
    "native": "B15: an op of compiled code on 8 doubles against np.add, ctypes, cffi and numba",
    "entry": "B16, B31: SciPy's quad through a plan's C entry; a plan called from 8 threads of C, and in each way",
    "frameworks_jax": "B21, B35: ops and plans in JAX, against a hand-written callback and an empty jit",
    "loop_gradients": "B45: gradients of loops that write, compiled, over the same loops compiled",
    "sine": "B28: sin, cos, exp, log and others of float64, compiled, against NumPy's, with the same bits",
    "ode": "B31: whole integrations of solve_ivp, explicit and stiff, against SciPy's",
    "frameworks_tfpt": "B21: a wrapped op in PyTensor and TensorFlow against bindings written by hand",
    "framework_costs": "B21: one op in every framework that is here, against bindings written by hand",
    "free_threads": "B33: without a GIL: a plan of Python nodes from two threads, an op on one",
    "machines": "B22, B23, B32: plan.map over local processes against ProcessPoolExecutor",
    "pictures": "B20: a page of 10^4 nodes in Chromium, until it is drawn",
    "profile_cost": "B19: what a profile costs, while it runs and while none does",
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the budgets of docs/performance.md.",
        epilog="suites:\n" + "\n".join(f"  {name:<14}{what}" for name, what in SUITES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="suites to run (default: all)")
    parser.add_argument("--json", metavar="F", help="also write the results to this file")
    parser.add_argument("--rounds", type=int, default=None, metavar="N", help="rounds (default: 15; 3 if quick)")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/performance.md holds it")
    parser.add_argument("--quick", action="store_true", help="small and short: shows that the suites work")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.names if name not in SUITES]:
        parser.error(f"no suite is called {', '.join(unknown)}; there are {', '.join(SUITES)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suites asked for; the exit status says whether every budget was met (not judged if quick)."""
    args = parse(argv)
    rounds = args.rounds if args.rounds is not None else 3 if args.quick else 15
    harness = Harness(rounds=rounds, quick=args.quick)
    console = Console()
    around = surroundings(harness)
    rows: list[Row] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        for name in args.names or SUITES:
            task = progress.add_task(f"{name}: {SUITES[name]}", total=None)
            rows += importlib.import_module(f".{name}", __package__).run(harness)
            progress.remove_task(task)
    if args.markdown:
        print(markdown(rows))
    else:
        show(rows, around, console)
    if args.json:
        save(rows, around, args.json)
    return 0 if args.quick or all(row.verdict != "fall short" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
