"""Instructions instead of time, for where a ratio is too noisy: ``python -m benchmarks.callgrind [CASE …]``.

valgrind counts the same number every time, whatever else the machine does. Each case makes some calls, and twice as
many; the difference, divided by the calls, is what one call takes. All cases run in one interpreter.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

PREPARE = """
import numpy as np, pyop
x = np.arange(8.0)
one, two = lambda x: x, lambda x, y: x
def op(f, spec): return pyop.op(spec)(f)
def chain(fs, x):
    for f in fs: x = f(x)
    return x
expression = lambda a, b, c, d: a * b + c * d - a
def written(a, b, c, d, out): np.subtract(a * b + c * d, a, out=out)
def compiled(function, *arguments):
    made = pyop.compile(function)
    for _ in range(3): made(*arguments)
    return made
x8, a, b, c, d, out = x, *[None] * 5
"""
UNROLL = 20
ONE, TWO = "float64[n] -> float64[n]", "float64[n], float64[n] -> float64[n]"
FUNCTIONS = "fs = [lambda x: x for _ in range(100)]"

ARRAYS = "a, b, c, d, out = np.random.default_rng(0).random((5, 10))"
FLOATS = "a, b, c, d = 0.5, 0.25, 1.5, 3.0"
FRESH = "f = lambda: type(expression)(expression.__code__.replace(), {})"
EXPRESSION = "f = compiled(expression, a, b, c, d)"

# Name: what to prepare, the statement, how many nodes it runs, and the case to compare it with.
CASES: dict[str, tuple[str, str, int, str | None]] = {
    "bare": ("f = one", "f(x)", 1, None),
    "bare2": ("f = two", "f(x, x)", 1, None),
    "op": (f"f = op(one, {ONE!r})", "f(x)", 1, "bare"),
    "op2": (f"f = op(two, {TWO!r})", "f(x, x)", 1, "bare2"),
    "loop": (f"{FUNCTIONS}; f = lambda x: chain(fs, x)", "f(x)", 100, None),
    "plan": (
        f"{FUNCTIONS}; ops = [op(f, {ONE!r}) for f in fs]; "
        "f = pyop.trace(lambda x: chain(ops, x), 'float64[n]').compile()",
        "f(x)",
        100,
        "loop",
    ),
    "smallest": (f"o = op(one, {ONE!r}); f = pyop.trace(lambda x: o(x), 'float64[n]').compile()", "f(x)", 1, "bare"),
    "empty": ("f, x = len, ()", "f(x)", 1, None),
    "new": (f"{ARRAYS}; {EXPRESSION}", "f(a, b, c, d)", 1, "empty"),
    "out": (f"{ARRAYS}; {EXPRESSION}", "f(a, b, c, d, out=out)", 1, "empty"),
    "into": (f"{ARRAYS}; {EXPRESSION}.plan_for(a, b, c, d).into(out)", "f(a, b, c, d)", 1, "empty"),
    "written": (f"{ARRAYS}; f = compiled(written, a, b, c, d, out)", "f(a, b, c, d, out)", 1, "empty"),
    "float": (f"{FLOATS}; f = compiled(lambda a: a * a + a - 1.0, a)", "f(a)", 1, "empty"),
    "floats": (f"{FLOATS}; {EXPRESSION}", "f(a, b, c, d)", 1, "empty"),
    "scalars": (f"{FLOATS}; a, b, c, d = map(np.float64, (a, b, c, d)); {EXPRESSION}", "f(a, b, c, d)", 1, "empty"),
    "singles": (f"{FLOATS}; a, b, c, d = map(np.array, (a, b, c, d)); {EXPRESSION}", "f(a, b, c, d)", 1, "empty"),
    "first": (f"{ARRAYS}; {FRESH}", "pyop.compile(f())(a, b, c, d)", 1, "empty"),
}
SLOW = {"first": 100}  # cases of which so many times fewer calls are enough


MARK = "getsid"  # a function of the C library that nothing else calls: the counts begin anew there
RUN = """
import os
x = x8
{prepare}
def run(n, f=f, x=x, a=a, b=b, c=c, d=d, out=out):
 for _ in range(n): {unrolled}
for n in (2, {turns}, 2 * {turns}):
 os.getsid(0)
 run(n)
os.getsid(0)
"""


def intervals(program: str) -> list[int]:
    """What an interpreter takes for `program`, from mark to mark."""
    with tempfile.TemporaryDirectory() as folder:
        counting = ["--tool=callgrind", f"--dump-before={MARK}", f"--callgrind-out-file={folder}/out"]
        environment = os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        command = ["valgrind", *counting, sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        parts = sorted(pathlib.Path(folder).glob("out.*"), key=lambda part: int(part.suffix[1:]))
        found = [re.search(r"^(?:totals|summary): (\d+)", part.read_text(), re.MULTILINE) for part in parts]
    if done.returncode != 0 or not found or None in found:
        raise RuntimeError(f"callgrind failed on {program!r}:\n{done.stderr[-2000:]}")
    return [int(count[1]) for count in found if count]


def per_node(cases: Sequence[str], calls: int) -> dict[str, float]:
    """Instructions a node, of each case."""
    programs, turns = [PREPARE], {}
    for case in cases:
        prepare, statement, nodes, _ = CASES[case]
        turns[case] = max(1, calls // nodes // UNROLL // SLOW.get(case, 1))
        # In a function and unrolled: globals and the loop itself would take more than the call.
        unrolled = "; ".join([statement] * UNROLL)
        programs.append(RUN.format(prepare=prepare, unrolled=unrolled, turns=turns[case]))
    counted = intervals("".join(programs))
    # Of each case: what went before, the first calls, some, and twice as many.
    of_case = zip(counted[2::4], counted[3::4], strict=False)
    return {
        case: (twice - once) / (turns[case] * UNROLL) / CASES[case][2]
        for case, (once, twice) in zip(cases, of_case, strict=False)
    }


def main() -> int:
    """Print instructions a node, and the ratio to the bare call, the loop, or an empty builtin call."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.callgrind", description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--calls", type=int, default=20_000, help="nodes to run in a case (default: 20000)")
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    if not shutil.which("valgrind"):
        parser.error("valgrind is not installed")
    wanted = args.cases or list(CASES)
    needed = dict.fromkeys(name for case in wanted for name in (case, CASES[case][3]) if name)
    counts = per_node(list(needed), args.calls)
    for case in wanted:
        base = CASES[case][3]
        ratio = f"  {counts[case] / counts[base]:.2f}× {base}" if base else ""
        print(f"{case:<10}{counts[case]:8.0f} instructions a node{ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
