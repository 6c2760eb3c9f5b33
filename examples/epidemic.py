"""An epidemic in four towns: a differential equation solved without Python, and fitted to the cases that were counted.

Susceptible, exposed, infected and recovered people of four towns that visit each other: 16 numbers.
`pyop.interop.scipy.solve_ivp` is called as SciPy's is and steps the compiled right-hand side in C++. How quickly the
disease spreads is found from noisy counts by `scipy.optimize.least_squares`, which gets its Jacobian by forward mode
through a loop of fixed steps.

    python examples/epidemic.py
    python examples/epidemic.py --plot epidemic.png
"""

import argparse
import time

import numpy as np
from scipy import integrate
from scipy.optimize import least_squares

import pyop
from pyop.interop.scipy import residuals, rhs, solve_ivp

PEOPLE = np.array([60e3, 25e3, 12e3, 3e3])
VISITS = np.array(
    [[0.90, 0.06, 0.03, 0.01], [0.10, 0.85, 0.04, 0.01], [0.08, 0.06, 0.85, 0.01], [0.10, 0.05, 0.05, 0.80]]
)
for constant in (PEOPLE, VISITS):
    constant.flags.writeable = False
DAYS = 120
BOUNDS = [0.1, 2.0], [2.0, 20.0]


def spread(t, y, contact, sick):
    """What changes in a day; `contact` infections a day, `sick` days of illness."""
    s, e, i, _ = y.reshape(4, 4)
    caught = contact * s * (VISITS @ (i / PEOPLE))
    return np.concatenate([-caught, caught - e / 3.0, e / 3.0 - i / sick, i / sick])


def start():
    """Ten cases in the first town."""
    first = np.array([10.0, 0.0, 0.0, 0.0])
    return np.concatenate([PEOPLE - first, np.zeros(4), first, np.zeros(4)])


def course(parameters, y):
    """New infections of each day in each town, by a fixed step of Runge and Kutta a day."""
    contact, sick = parameters
    counted = np.empty((DAYS, 4))
    for day in range(DAYS):
        a = spread(0.0, y, contact, sick)
        b = spread(0.0, y + 0.5 * a, contact, sick)
        c = spread(0.0, y + 0.5 * b, contact, sick)
        d = spread(0.0, y + c, contact, sick)
        after = y + (a + 2.0 * b + 2.0 * c + d) / 6.0
        counted[day] = y[:4] - after[:4]
        y = after
    return counted


def miss(parameters, y, cases):
    """How far the counts are off, each in units of its own spread: by Anscombe's transform, which makes that 1."""
    return 2.0 * (np.sqrt(course(parameters, y) + 0.375) - np.sqrt(cases + 0.375)).ravel()


fast_course = pyop.compile(course)


def plot(path, cases, found) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for town, colour in enumerate(("tab:blue", "tab:orange", "tab:green", "tab:red")):
        axes.plot(cases[:, town] / PEOPLE[town] * 1e5, ".", color=colour, markersize=3)
        axes.plot(found[:, town] / PEOPLE[town] * 1e5, color=colour, label=f"town of {PEOPLE[town]:,.0f}")
    axes.set(title="new infections a day in 100,000: counted, and by the fit", xlabel="day")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    true = np.array([0.55, 5.0])
    plain = course(true, start())
    assert np.array_equal(fast_course(true, start()), plain), "the compiled function gives the same bits"
    cases = np.random.default_rng(0).poisson(np.maximum(plain, 0.0)).astype(float)

    fun = rhs(spread)
    solve_ivp(fun, (0, 1), start(), args=tuple(true))  # compiled here
    begin = time.perf_counter()
    ours = solve_ivp(fun, (0, DAYS), start(), "DOP853", args=tuple(true), rtol=1e-8)
    middle = time.perf_counter()
    theirs = integrate.solve_ivp(spread, (0, DAYS), start(), "DOP853", args=tuple(true), rtol=1e-8)
    end = time.perf_counter()
    assert ours.nfev == theirs.nfev
    assert np.allclose(ours.y, theirs.y, rtol=1e-9, atol=1e-6)

    off = residuals(miss)
    fit = least_squares(off, [0.7, 4.0], jac=off.jac, args=(start(), cases), bounds=BOUNDS)
    found = fast_course(fit.x, start())
    print(f"fitted: {fit.x[0]:.3f} infections a day, {fit.x[1]:.2f} days of illness (true: 0.550, 5.00)")
    print("courses equal to the last bit")
    print(f"peak in the first town on day {np.argmax(found[:, 0])}, in the last on day {np.argmax(found[:, 3])}")
    print(f"{ours.y[12:, -1].sum():,.0f} of {PEOPLE.sum():,.0f} have had it after {DAYS} days")
    print(f"solve_ivp: SciPy {1e3 * (end - middle):.1f} ms, pyop {1e3 * (middle - begin):.1f} ms ({ours.nfev} calls)")
    if options.plot:
        plot(options.plot, cases, found)


if __name__ == "__main__":
    main()
