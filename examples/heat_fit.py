"""What is a rod made of? A partial differential equation, fitted by its gradient.

A rod is heated at one end, and thermometers along it are read from time to time. How well each piece of the rod
conducts is unknown: 40 numbers, to be found from the readings. The simulation is a loop of NumPy over 400 steps of
time. `pyop.interop.scipy.objective` compiles it with its derivative (the adjoint of the loop, all 40 slopes for the
price of a few simulations), and `scipy.optimize.minimize` does the rest.

    python examples/heat_fit.py
    python examples/heat_fit.py --plot rod.png
"""

import argparse
import time

import numpy as np
from scipy.optimize import minimize

import pyop
from pyop.interop.scipy import objective

CELLS, STEPS, EVERY = 41, 400, 20
SENSORS = np.arange(2, CELLS, 3)


def simulate(conduct):
    """What the thermometers show, a row for every 20th step. `conduct` belongs to the joints between cells."""
    heat = np.zeros(CELLS)
    shown = np.zeros((STEPS // EVERY, len(SENSORS)))
    for k in range(STEPS):
        flow = conduct * (heat[:-1] - heat[1:])
        heat[0] = 1.0  # held hot
        heat[1:-1] += flow[:-1] - flow[1:]
        heat[-1] += flow[-1]
        if k % EVERY == EVERY - 1:
            shown[k // EVERY] = heat[SENSORS]
    return shown


def misfit(logs, readings):
    """How badly a rod explains the readings, and how rough it is."""
    return np.sum((simulate(np.exp(logs)) - readings) ** 2) + 2e-5 * np.sum(np.diff(logs) ** 2)


fast_simulate = pyop.compile(simulate)


def experiment(seed=0):
    """A rod with a poor and a good stretch, and its readings with noise."""
    joint = np.arange(CELLS - 1)
    conduct = 0.3 - 0.22 * np.exp(-(((joint - 10) / 3.0) ** 2)) + 0.15 * np.exp(-(((joint - 26) / 4.0) ** 2))
    readings = simulate(conduct)
    return conduct, readings + 0.001 * np.random.default_rng(seed).standard_normal(readings.shape)


def plot(path, conduct, found, readings) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(conduct, color="black", label="the rod")
    left.plot(found, color="tab:orange", linestyle="--", label="found")
    left.set(title="how well it conducts", xlabel="joint")
    left.legend()
    for row, line in zip(readings[::3], fast_simulate(found)[::3], strict=True):
        right.plot(SENSORS, row, "o", color="tab:blue", markersize=4)
        right.plot(SENSORS, line, color="tab:orange", linewidth=1)
    right.set(title="readings, and what the rod found would show", xlabel="cell")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    conduct, readings = experiment()
    assert np.array_equal(fast_simulate(conduct), simulate(conduct)), "the compiled function gives the same bits"
    fun = objective(misfit)
    guess = np.log(np.full(CELLS - 1, 0.3))
    begin = time.perf_counter()
    fit = minimize(fun, guess, jac=True, args=(readings,), method="L-BFGS-B", options={"maxiter": 60})
    end = time.perf_counter()
    found = np.exp(fit.x)

    direction = np.random.default_rng(1).standard_normal(len(guess))
    along = (misfit(guess + 1e-6 * direction, readings) - misfit(guess - 1e-6 * direction, readings)) / 2e-6
    assert np.isclose(fun.gradient(guess, readings) @ direction, along, rtol=1e-5)

    def off(rod):
        return np.sqrt(np.mean((rod - conduct) ** 2))

    print(f"{readings.size} readings, {len(found)} unknowns; simulations equal to the last bit")
    print(f"error of the guess {off(np.exp(guess)):.3f}, of the fit {off(found):.3f}")
    print(f"{fit.nfev} simulations, each with its gradient, in {end - begin:.2f} s")
    if options.plot:
        plot(options.plot, conduct, found, readings)


if __name__ == "__main__":
    main()
