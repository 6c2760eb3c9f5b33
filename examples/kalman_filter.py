"""Track a moving object in noise with a Kalman filter, its loop compiled.

Four numbers of state (position and velocity in the plane), two of measurement: a dozen products of tiny matrices a
step, one step a measurement, and each step needs the one before. Nothing can be vectorised; the time goes into calls.
The loop is written as one would, with a path that is filled row by row. Compiled it is one node, recorded once however
many measurements there are, and so is the loop of its derivative: how the error depends on the noise that is assumed.

    python examples/kalman_filter.py
"""

import time

import numpy as np

import pyop

DT = 0.1
F = np.array([[1, 0, DT, 0], [0, 1, 0, DT], [0, 0, 1, 0], [0, 0, 0, 1.0]])  # how the state moves
H = np.array([[1, 0, 0, 0], [0, 1, 0, 0.0]])  # what is measured of it
Q = 0.05 * np.diag([DT**3 / 3, DT**3 / 3, DT, DT])
R = 0.25 * np.eye(2)
ONE = np.eye(4)


def track(measured, noise):
    """The path of the object as the filter sees it, and what it knows in the end. `noise` scales `R`."""
    x = np.zeros(4)
    P = 10.0 * np.eye(4)
    path = np.empty((len(measured), 4))
    for k in range(len(measured)):
        # Predict where the object is now ...
        x = F @ x
        P = F @ P @ F.T + Q
        # ... and correct that by what is measured.
        S = H @ P @ H.T + noise * R
        K = np.linalg.solve(S, H @ P).T
        left = ONE - K @ H
        x += K @ (measured[k] - H @ x)
        P = left @ P @ left.T + noise * (K @ R @ K.T)
        path[k] = x
    return path, P


compiled_track = pyop.compile(track)


def loss(noise, measured, truth):
    """The mean square of how far the path is off."""
    path, _ = track(measured, noise)
    return np.mean((path[:, :2] - truth) ** 2)


slope = pyop.compile(pyop.grad(loss))


def flight(n=2000, seed=0):
    """A path in a plane, and what a noisy sensor says of it."""
    rng = np.random.default_rng(seed)
    t = DT * np.arange(n)
    truth = np.stack([10.0 * np.cos(0.05 * t), 5.0 * np.sin(0.1 * t)], axis=1)
    return truth, truth + 0.5 * rng.standard_normal(truth.shape)


def main() -> None:
    truth, measured = flight()
    noise = np.float64(1.0)
    compiled_track(measured, noise)  # traced and compiled here
    begin = time.perf_counter()
    plain, known = track(measured, noise)
    middle = time.perf_counter()
    fast, known_too = compiled_track(measured, noise)
    end = time.perf_counter()
    assert np.array_equal(plain, fast), "the compiled function gives the same bits"
    assert np.array_equal(known, known_too)

    def error(path):
        return np.sqrt(np.mean(np.sum((path - truth) ** 2, axis=1)))

    print(f"{len(measured)} measurements, {error(measured):.2f} m off; filtered {error(fast[:, :2]):.2f} m")
    nodes = len(compiled_track.graph(measured, noise))
    steep = slope(noise, measured, truth)
    print(f"a graph of {nodes} nodes; with more noise assumed the square error changes by {steep:.5f}")
    print(f"NumPy {middle - begin:.3f} s, compiled {end - middle:.3f} s")


if __name__ == "__main__":
    main()
