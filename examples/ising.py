"""A magnet that forgets itself: the Ising model, swept on a chessboard, many temperatures at once.

Spins on a grid like to point as their neighbours do; heat turns them at random. Below a critical temperature (2.269)
they agree on a direction, above it they do not. White and black fields take turns, so a sweep is a few operations on
whole grids. The random numbers are an argument: what is compiled is a function of what it is given, and gives the
bits of NumPy.

    python examples/ising.py
    python examples/ising.py --plot ising.png
"""

import argparse
import time

import numpy as np

import pyop

SIZE, SWEEPS = 32, 250
TEMPERATURES = np.linspace(1.6, 3.2, 9)
CHESS = np.add.outer(np.arange(SIZE), np.arange(SIZE)) % 2
CHESS.flags.writeable = False


def run(spins, heat, noise):
    """Let a stack of grids, one for each temperature, go on for as many sweeps as there is noise for."""
    magnet = np.zeros((len(noise), len(spins)))
    for k in range(len(noise)):
        for colour in range(2):
            around = np.roll(spins, 1, 1) + np.roll(spins, -1, 1) + np.roll(spins, 1, 2) + np.roll(spins, -1, 2)
            turn = noise[k, colour] < np.exp(-2.0 * spins * around / heat[:, None, None])
            spins = np.where(turn & (colour == CHESS), -spins, spins)
        magnet[k] = np.mean(spins, axis=(1, 2))
    return spins, magnet


fast_run = pyop.compile(run)


def plot(path, spins, size) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
    for at, k in zip(axes, (0, 4, 8), strict=False):
        at.imshow(spins[k], cmap="cividis")
        at.set_title(f"temperature {TEMPERATURES[k]:.1f}")
        at.set_axis_off()
    axes[3].plot(TEMPERATURES, size, "o-")
    axes[3].axvline(2.269, color="black", linestyle="--", linewidth=1)
    axes[3].set(title="magnetisation", xlabel="temperature")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    spins = np.ones((len(TEMPERATURES), SIZE, SIZE))
    noise = np.random.default_rng(0).random((SWEEPS, 2, *spins.shape))
    fast_run(spins, TEMPERATURES, noise)  # traced and compiled here
    begin = time.perf_counter()
    plain, magnet = run(spins, TEMPERATURES, noise)
    middle = time.perf_counter()
    fast, magnet_too = fast_run(spins, TEMPERATURES, noise)
    end = time.perf_counter()
    assert np.array_equal(plain, fast), "the compiled function gives the same bits"
    assert np.array_equal(magnet, magnet_too)

    size = np.abs(np.mean(magnet[SWEEPS // 2 :], axis=0))
    for heat, m in zip(TEMPERATURES, size, strict=True):
        print(f"temperature {heat:.1f}  magnetisation {m:5.3f}  {'#' * round(40 * m)}")
    print(f"{SWEEPS} sweeps of {len(TEMPERATURES)} grids, equal to the last bit")
    print(f"NumPy {middle - begin:.2f} s, compiled {end - middle:.2f} s")
    if options.plot:
        plot(options.plot, fast, size)


if __name__ == "__main__":
    main()
