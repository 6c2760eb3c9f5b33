"""A Gaussian process that chooses its own scales: maximum likelihood with gradients through a Cholesky factor.

Thirty noisy points, and a prior that says nothing but "smooth": how smooth, how large and how noisy are three numbers
that the data decide, by the likelihood that the prior gives to them. It takes a Cholesky factor and two solves of
NumPy; the derivative goes through both, and `scipy.optimize.minimize` gets value and gradient from one compiled plan.

    python examples/gaussian_process.py
    python examples/gaussian_process.py --plot process.png
"""

import argparse
import time

import numpy as np
from scipy.optimize import minimize

import pyop
from pyop.interop.scipy import objective


def kernel(a, b, length, size):
    """How much values at `a` and at `b` go together."""
    return size**2 * np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)


def surprise(logs, x, y):
    """Minus the log likelihood of `y`, by the logarithms of length, size and noise."""
    length, size, noise = np.exp(logs)
    factor = np.linalg.cholesky(kernel(x, x, length, size) + noise**2 * np.eye(len(x)))
    white = np.linalg.solve(factor, y)
    return 0.5 * white @ white + np.sum(np.log(np.diag(factor))) + 0.5 * len(x) * np.log(2.0 * np.pi)


def predict(logs, x, y, at):
    """Mean and standard deviation of the function at other points."""
    length, size, noise = np.exp(logs)
    factor = np.linalg.cholesky(kernel(x, x, length, size) + noise**2 * np.eye(len(x)))
    across = np.linalg.solve(factor, kernel(x, at, length, size))
    mean = across.T @ np.linalg.solve(factor, y)
    return mean, np.sqrt(size**2 - np.sum(across**2, axis=0))


fast_surprise, fast_predict = pyop.compile(surprise), pyop.compile(predict)


def truth(x):
    return np.sin(1.3 * x) + 0.3 * x


def observe(count=30, seed=3):
    """Points here and there, with a gap, and noise of 0.2."""
    rng = np.random.default_rng(seed)
    x = np.sort(np.concatenate([rng.uniform(0.0, 4.0, count // 2), rng.uniform(6.0, 10.0, count // 2)]))
    return x, truth(x) + 0.2 * rng.standard_normal(len(x))


def plot(path, x, y, at, mean, spread) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.fill_between(at, mean - 2 * spread, mean + 2 * spread, color="tab:blue", alpha=0.2, label="95 %")
    axes.plot(at, mean, color="tab:blue", label="mean")
    axes.plot(at, truth(at), color="black", linestyle="--", linewidth=1, label="truth")
    axes.plot(x, y, "o", color="tab:orange", markersize=4, label="data")
    axes.legend()
    axes.set_title("what is known, and where nothing is")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    x, y = observe()
    fun, start = objective(surprise), np.zeros(3)
    assert fast_surprise(start, x, y) == surprise(start, x, y), "the compiled function gives the same bits"
    fun(start, x, y)  # traced and compiled here
    begin = time.perf_counter()
    fit = minimize(fun, start, jac=True, args=(x, y), method="BFGS")
    middle = time.perf_counter()
    plain = minimize(surprise, start, args=(x, y), method="BFGS")
    end = time.perf_counter()
    at = np.linspace(-0.5, 11.0, 200)
    mean, spread = fast_predict(fit.x, x, y, at)
    assert all(map(np.array_equal, (mean, spread), predict(fit.x, x, y, at)))
    assert np.allclose(fit.x, plain.x, atol=1e-3)

    length, size, noise = np.exp(fit.x)
    print(f"length {length:.2f}, size {size:.2f}, noise {noise:.2f} (the noise that was added: 0.2)")
    inside = np.mean(np.abs(mean - truth(at)) < 2 * spread)
    print(f"{100 * inside:.0f} % of the truth are inside of two standard deviations; equal to the last bit")
    print(f"fit with gradients: {fit.nfev} calls, {1e3 * (middle - begin):.0f} ms")
    print(f"fit by differences: {plain.nfev} calls, {1e3 * (end - middle):.0f} ms")
    if options.plot:
        plot(options.plot, x, y, at, mean, spread)


if __name__ == "__main__":
    main()
