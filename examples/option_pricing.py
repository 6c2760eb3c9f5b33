"""Price an option by Monte Carlo, with all its Greeks from one derivative.

An Asian call pays by how far the mean price over a year lies above the strike. There is no formula for it: one draws
paths of the price and takes the mean of what they pay. Traders want to know, too, how the value moves with each of
the things that it depends on (the "Greeks"), which by differences takes two more runs each. Here the value is a NumPy
function, `pyop.value_and_grad` gives it and all four derivatives at once, and both are compiled: the random numbers
are an argument, so every call sees the same paths.

    python examples/option_pricing.py
    python examples/option_pricing.py --plot option.png
"""

import argparse
import time

import numpy as np

import pyop

STEPS = 52  # one price a week
NAMES = "delta", "vega", "rho", "theta"


def paths(spot, volatility, rate, years, normal):
    """Prices at the end of each step, one path a row: geometric Brownian motion."""
    dt = years / STEPS
    drift = (rate - 0.5 * volatility**2) * dt
    return spot * np.exp(np.cumsum(drift + volatility * np.sqrt(dt) * normal, axis=1))


def value(spot, volatility, rate, years, strike, normal):
    """What the option is worth today: the mean payoff, discounted."""
    payoff = np.maximum(np.mean(paths(spot, volatility, rate, years, normal), axis=1) - strike, 0.0)
    return np.exp(-rate * years) * np.mean(payoff)


priced = pyop.compile(value)
greeks = pyop.compile(pyop.value_and_grad(value, argnums=(0, 1, 2, 3)))


def market(count=5000, seed=0):
    """Spot, volatility, rate, years, strike; and the noise of the paths, each with its mirror image."""
    half = np.random.default_rng(seed).standard_normal((count // 2, STEPS))
    return (*map(np.float64, (100.0, 0.25, 0.03, 1.0, 100.0)), np.concatenate([half, -half]))


def difference(arguments, k, step=1e-4):
    """The derivative by the k-th argument by central differences: two more runs of everything."""
    up, down = list(arguments), list(arguments)
    up[k] += step
    down[k] -= step
    return (value(*up) - value(*down)) / (2 * step)


def plot(path, arguments) -> None:
    import matplotlib.pyplot as plt

    _, volatility, rate, years, strike, normal = arguments
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    week = np.arange(1, STEPS + 1)
    left.plot(week, paths(*arguments[:4], normal[:60]).T, color="tab:blue", alpha=0.3, linewidth=0.8)
    left.axhline(strike, color="black", linestyle="--", linewidth=1)
    left.set(title="60 of the paths, and the strike", xlabel="week", ylabel="price")
    spots = np.linspace(70.0, 130.0, 41)
    found = [greeks(np.float64(spot), volatility, rate, years, strike, normal) for spot in spots]
    right.plot(spots, [worth for worth, _ in found], color="tab:blue")
    right.set(title="value, and delta", xlabel="price today", ylabel="value")
    slope = right.twinx()
    slope.plot(spots, [by[0] for _, by in found], color="tab:orange")
    slope.set_ylabel("delta")
    plt.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    arguments = market()
    priced(*arguments)
    worth, slopes = greeks(*arguments)  # traced and compiled here
    begin = time.perf_counter()
    plain = value(*arguments)
    middle = time.perf_counter()
    assert priced(*arguments) == plain, "the compiled function gives the same bits"
    after = time.perf_counter()
    greeks(*arguments)
    end = time.perf_counter()

    print(
        f"the option is worth {worth:.4f}: mean of {len(arguments[-1])} paths of {STEPS} weeks, equal to the last bit"
    )
    for k, (name, slope) in enumerate(zip(NAMES, slopes, strict=True)):
        print(f"{name:>6} {slope:9.4f}   by differences {difference(arguments, k):9.4f}")
    print(f"value: NumPy {1e3 * (middle - begin):.1f} ms, compiled {1e3 * (after - middle):.1f} ms")
    print(f"value and four Greeks, compiled: {1e3 * (end - after):.1f} ms")
    if options.plot:
        plot(options.plot, arguments)


if __name__ == "__main__":
    main()
