"""Find clusters by k-means: a loop that ends by what it computes.

Lloyd's method: give every point to the nearest centre, move each centre into the mean of its points, until nothing
moves. How many rounds that takes is only known when it is over; compiled, the `while` is one node that ends by
itself, and one plan serves every number of rounds. What it compares the centres by is an array written in place.

    python examples/k_means.py
    python examples/k_means.py --plot clusters.png
"""

import argparse
import time

import numpy as np

import pyop


def distances(points, centres):
    return np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)


def k_means(points, centres, tolerance):
    """Centres, the nearest one of each point, and how many rounds that took."""
    moved, rounds = np.inf, 0
    while moved > tolerance:
        nearest = np.argmin(distances(points, centres), axis=1)
        belongs = (nearest[:, None] == np.arange(len(centres))).astype(points.dtype)
        middle = (belongs.T @ points) / np.maximum(np.sum(belongs, axis=0), 1.0)[:, None]
        moved = np.max(np.abs(middle - centres))
        centres = middle
        rounds += 1
    return centres, np.argmin(distances(points, centres), axis=1), rounds


fast_k_means = pyop.compile(k_means)


def cloud(count=4000, seed=5):
    """Points around five places, and five of them to begin with."""
    rng = np.random.default_rng(seed)
    places = np.array([[0.0, 0.0], [4.0, 1.0], [1.5, 4.0], [-3.0, 3.0], [3.5, -3.5]])
    points = places[rng.integers(len(places), size=count)] + rng.standard_normal((count, 2))
    return points, points[:5].copy(), places


def plot(path, points, centres, nearest) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
    axes.scatter(*points.T, c=nearest, cmap="tab10", s=3)
    axes.plot(*centres.T, "x", color="black", markersize=12, markeredgewidth=3)
    axes.set_aspect("equal")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    points, first, places = cloud()
    fast_k_means(points, first, 1e-9)  # traced and compiled here
    begin = time.perf_counter()
    plain = k_means(points, first, 1e-9)
    middle = time.perf_counter()
    centres, nearest, rounds = fast_k_means(points, first, 1e-9)
    end = time.perf_counter()
    assert all(map(np.array_equal, plain, (centres, nearest, rounds))), "the compiled function gives the same bits"

    off = np.sqrt(np.min(distances(places, centres), axis=1))
    print(f"{len(points)} points, {rounds} rounds; the centres are {off.max():.2f} from the true ones at most")
    _, found, again = fast_k_means(points, points[5:10].copy(), 1e-9)
    same = len(np.unique(np.stack([nearest, found]), axis=1).T)
    print(f"from another start {again} rounds, and {same} pairs of old and new clusters; equal to the last bit")
    print(f"NumPy {1e3 * (middle - begin):.1f} ms, compiled {1e3 * (end - middle):.1f} ms")
    if options.plot:
        plot(options.plot, points, centres, nearest)


if __name__ == "__main__":
    main()
