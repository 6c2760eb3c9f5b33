"""Track a moving object in noise with a Kalman filter, its step compiled.

Four numbers of state (position and velocity in the plane), two of measurement: a dozen products of tiny matrices a
step, one step a measurement, and each step needs the one before. Nothing can be vectorised; the time goes into calls.

    python examples/kalman_filter.py
"""

import time
from typing import NamedTuple

import numpy as np

import pyop


class Estimate(NamedTuple):
    """Mean and covariance of the state."""

    x: np.ndarray
    P: np.ndarray


DT = 0.1
F = np.array([[1, 0, DT, 0], [0, 1, 0, DT], [0, 0, 1, 0], [0, 0, 0, 1.0]])  # how the state moves
H = np.array([[1, 0, 0, 0], [0, 1, 0, 0.0]])  # what is measured of it
Q = 0.05 * np.diag([DT**3 / 3, DT**3 / 3, DT, DT])
R = 0.25 * np.eye(2)
ONE = np.eye(4)
UNKNOWN = Estimate(np.zeros(4), 10.0 * np.eye(4))


def step(state, z):
    """Predict where the object is now, and correct that by the measurement `z`."""
    x = F @ state.x
    P = F @ state.P @ F.T + Q
    S = H @ P @ H.T + R
    K = np.linalg.solve(S, H @ P).T
    left = ONE - K @ H
    return Estimate(x + K @ (z - H @ x), left @ P @ left.T + K @ R @ K.T)


compiled_step = pyop.compile(step)


def track(function, measurements):
    """The path of the object as the filter sees it, and what it knows in the end."""
    state, path = UNKNOWN, []
    for z in measurements:
        state = function(state, z)
        path.append(state.x)
    return np.array(path), state


def flight(n=2000, seed=0):
    """A path in a plane, and what a noisy sensor says of it."""
    rng = np.random.default_rng(seed)
    t = DT * np.arange(n)
    truth = np.stack([10.0 * np.cos(0.05 * t), 5.0 * np.sin(0.1 * t)], axis=1)
    return truth, truth + 0.5 * rng.standard_normal(truth.shape)


def main() -> None:
    truth, measured = flight()
    compiled_step(UNKNOWN, measured[0])  # traced and compiled here
    begin = time.perf_counter()
    plain, known = track(step, measured)
    middle = time.perf_counter()
    fast, known_too = track(compiled_step, measured)
    end = time.perf_counter()
    assert np.array_equal(plain, fast), "the compiled function gives the same bits"
    assert np.array_equal(known.P, known_too.P)

    def error(path):
        return np.sqrt(np.mean(np.sum((path - truth) ** 2, axis=1)))

    print(f"{len(measured)} measurements, {error(measured):.2f} m off; filtered {error(fast[:, :2]):.2f} m")
    print(f"NumPy {middle - begin:.3f} s, compiled {end - middle:.3f} s")


if __name__ == "__main__":
    main()
