"""Solve the equations of a small gene network with scipy, the right-hand side compiled.

A repressilator of five genes: each makes a messenger RNA, which makes a protein, which represses the next gene in the
ring; a sixth input, light, drives the first gene. That is ten equations. SciPy's solver calls the right-hand side some
ten thousand times with ten numbers each time, so nearly all of its time goes into the overhead of NumPy calls, which
is what compiling removes.

    python examples/reaction_network.py
"""

import time

import numpy as np
from scipy.integrate import solve_ivp

import pyop

GENES = 5
STRENGTH = np.array([216.0, 180.0, 200.0, 220.0, 190.0])
LEAK = 0.2
DECAY = np.array([0.2, 0.25, 0.2, 0.15, 0.2])
START = np.concatenate([np.zeros(GENES), np.linspace(1.0, 20.0, GENES)])


def rhs(t, y):
    """Time derivative of five messengers and five proteins."""
    messenger, protein = y[:GENES], y[GENES:]
    change = np.zeros_like(y)
    for gene in range(GENES):
        repressor = protein[gene - 1]  # of the gene before it in the ring
        change[gene] = STRENGTH[gene] / (1.0 + repressor * repressor) + LEAK - messenger[gene]
    change[0] += 1.0 + np.sin(0.5 * t)  # light
    change[GENES:] = DECAY * (messenger - protein)
    return change


compiled_rhs = pyop.compile(rhs)


def solve(function, until=200.0):
    """Integrate from the start to `until`."""
    return solve_ivp(function, (0.0, until), START, rtol=1e-6, atol=1e-9)


def main() -> None:
    print(compiled_rhs.plan_for(0.0, START).explain())
    begin = time.perf_counter()
    plain = solve(rhs)
    middle = time.perf_counter()
    fast = solve(compiled_rhs)
    end = time.perf_counter()
    assert np.array_equal(plain.y, fast.y), "the compiled function gives the same bits"
    print(f"\n{plain.nfev} calls of the right-hand side; the solutions are equal to the last bit")
    print(f"solve_ivp with NumPy {middle - begin:.3f} s, compiled {end - middle:.3f} s")


if __name__ == "__main__":
    main()
