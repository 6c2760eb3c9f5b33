"""Waves through two slits: a stencil in a loop, written in place.

The wave equation on a grid: the next height of the water at a point comes from the present and the last height there,
and from the four neighbours. A wall with two slits stands in the way, and behind it the waves add up and cancel as
Young saw it. The program has the in-place writes that NumPy programmers use to spare memory; compiled, the loop is
one node, its operations go block by block through the cache, and the grid ends up with the same bits.

    python examples/waves.py
    python examples/waves.py --plot waves.png
"""

import argparse
import time

import numpy as np

import pyop

SPEED = 0.25  # the square of the wave's speed, in cells a step


def run(now, last, wall, steps):
    """Let the waves go on for some steps; returns how bright it is at each point."""
    bright = np.zeros_like(now)
    for k in range(steps):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4.0 * now[1:-1, 1:-1]
        last[1:-1, 1:-1] = 2.0 * now[1:-1, 1:-1] - last[1:-1, 1:-1] + SPEED * around
        last *= wall
        last[:, 1] = np.sin(0.4 * k)  # the source: a straight wave from the left
        last, now = now, last
        bright += now * now
    return bright


def basin(rows=200, columns=240):
    """Still water twice, and the wall with its slits: 0 where no wave can be, below 1 where the rim swallows it."""
    rim = np.minimum(np.minimum(np.arange(rows), np.arange(rows)[::-1])[:, None], np.arange(columns)[::-1])
    wall = 1.0 - 0.02 * np.maximum(0.0, 1.0 - rim / 20.0)
    wall[:, 60:63] = 0.0
    for slit in (rows // 2 - 25, rows // 2 + 25):
        wall[slit - 4 : slit + 4, 60:63] = 1.0
    return np.zeros((rows, columns)), np.zeros((rows, columns)), wall


fast_run = pyop.compile(run)


def plot(path, height, bright) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    left.imshow(height, cmap="RdBu", vmin=-1, vmax=1)
    left.set_title("the water at the end")
    right.imshow(np.sqrt(bright), cmap="magma", vmax=np.sqrt(np.percentile(bright, 99)))
    right.set_title("where it was moved most")
    for axes in (left, right):
        axes.set_axis_off()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    steps = 600
    fast_run(*basin(), steps)  # traced and compiled here
    now, last, wall = basin()
    begin = time.perf_counter()
    plain = run(now, last, wall, steps)
    middle = time.perf_counter()
    now_too, last_too, _ = basin()
    after = time.perf_counter()
    fast = fast_run(now_too, last_too, wall, steps)
    end = time.perf_counter()
    assert np.array_equal(plain, fast), "the compiled function gives the same bits"
    assert np.array_equal(now, now_too), "and leaves its arguments as NumPy does"
    assert np.array_equal(last, last_too)

    screen = fast[:, 160]  # a column behind the wall
    inner = screen[1:-1]
    peaks = np.flatnonzero((inner > screen[:-2]) & (inner > screen[2:]) & (inner > 0.1 * screen.max())) + 1
    print(f"{steps} steps of a basin of {now.shape[0]} by {now.shape[1]}, equal to the last bit")
    print(f"bright fringes on the screen at rows {', '.join(map(str, peaks))}")
    print(f"NumPy {middle - begin:.3f} s, compiled {end - after:.3f} s")
    if options.plot:
        plot(options.plot, now, fast)


if __name__ == "__main__":
    main()
