"""Three stars on one curve: gravity in loops over pairs, as one writes them down, compiled.

The textbook way is two loops over bodies and a handful of operations on vectors of length two, far too small for
NumPy: nearly all time goes into calls. Compiled, the loops are recorded once and run in C++, positions and velocities
are written in place, and the path is filled row by row. The start is the figure eight of Moore, Chenciner and
Montgomery, where three equal masses chase each other for ever; a derivative says how the energy answers to each
coordinate, which is the force.

    python examples/n_body.py
    python examples/n_body.py --plot eight.png
"""

import argparse
import time

import numpy as np

import pyop

MASS = np.ones(3)
MASS.flags.writeable = False  # a constant: no call needs to look at it again
PERIOD = 6.32591398


def accelerations(where):
    """What all others do to each body."""
    pull = np.zeros_like(where)
    for i in range(len(where)):
        for j in range(len(where)):
            if i != j:
                r = where[j] - where[i]
                pull[i] += MASS[j] * r / np.sqrt(r @ r) ** 3
    return pull


def fly(where, speed, dt, steps):
    """The path by leapfrog steps (drift, kick, drift); `where` and `speed` hold the end of it."""
    path = np.empty((steps, *where.shape))
    for k in range(steps):
        where += 0.5 * dt * speed
        speed += dt * accelerations(where)
        where += 0.5 * dt * speed
        path[k] = where
    return path


def energy(where, speed):
    """Kinetic and potential energy of all."""
    total = 0.5 * np.sum(MASS[:, None] * speed**2)
    for i in range(len(where)):
        for j in range(i):
            r = where[j] - where[i]
            total -= MASS[i] * MASS[j] / np.sqrt(r @ r)
    return total


fast_fly = pyop.compile(fly)
slope = pyop.compile(pyop.grad(energy))


def eight():
    """Positions and velocities of the figure eight."""
    one, turn = np.array([0.97000436, -0.24308753]), np.array([0.93240737, 0.86473146])
    return np.array([one, -one, [0.0, 0.0]]), np.array([turn / 2, turn / 2, -turn])


def plot(path, flown) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for k, colour in enumerate(("tab:blue", "tab:orange", "tab:green")):
        axes.plot(*flown[: len(flown) // 3, k].T, color=colour)
        axes.plot(*flown[len(flown) // 3, k], "o", color=colour, markersize=12)
    axes.set_aspect("equal")
    axes.set_title("each star a third of a round: together the whole curve")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    steps = 2000
    dt = PERIOD / steps
    fast_fly(*eight(), dt, steps)  # traced and compiled here
    where, speed = eight()
    begin = time.perf_counter()
    plain = fly(where, speed, dt, steps)
    middle = time.perf_counter()
    where_too, speed_too = eight()
    after = time.perf_counter()
    fast = fast_fly(where_too, speed_too, dt, steps)
    end = time.perf_counter()
    assert np.array_equal(plain, fast), "the compiled function gives the same bits"
    assert np.array_equal(where, where_too), "and leaves its arguments as NumPy does"
    assert np.array_equal(speed, speed_too)

    start = eight()
    print(f"after one round of {steps} steps the stars are {np.abs(where - start[0]).max():.1e} from where they began")
    print(f"energy {energy(*start):.6f}, and after the round {energy(where, speed):.6f}")
    off = np.abs(slope(*start) + MASS[:, None] * accelerations(start[0])).max()
    print(f"the derivative of the energy is minus the force, {off:.0e} apart; paths equal to the last bit")
    print(f"NumPy {middle - begin:.3f} s, compiled {end - after:.4f} s")
    if options.plot:
        plot(options.plot, fast)


if __name__ == "__main__":
    main()
