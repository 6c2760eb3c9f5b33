"""P1: eleven small programs as people write them, compiled, against the same program in NumPy.

Nothing in them is written for pyop; `tests/test_programs.py` sees to it that they call no Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement

SIZES = (30, 100_000)
# How many times faster than NumPy a program is to be, by size.
FASTER = {30: 2.0, 100_000: 1.0}


def fir(x: Any) -> Any:
    """A filter of five taps, on a ring."""
    y = np.zeros_like(x)
    for k, tap in enumerate((0.1, 0.2, 0.4, 0.2, 0.1)):
        y = y + tap * np.roll(x, k)
    return y


def heat(u: Any) -> Any:
    """A step of the heat equation, the ends held."""
    return np.concatenate([u[:1], u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])


def black_scholes(price: Any, strike: Any, years: Any) -> Any:
    """The price of a call option, the normal distribution by its usual approximation."""
    rate, volatility = 0.02, 0.3
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + volatility**2 / 2) * years) / spread

    def normal(z: Any) -> Any:
        return 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))

    return price * normal(d1) - strike * np.exp(-rate * years) * normal(d1 - spread)


def kmeans(points: Any, centres: Any) -> Any:
    """The nearest centre of each point, and how far they are."""
    distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return distance.argmin(axis=1), np.sqrt(distance.min(axis=1)).mean()


def softmax(x: Any) -> Any:
    """Softmax of rows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    """Rows of mean 0 and variance 1, scaled."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * gain + bias


def rotate(points: Any, angle: Any) -> Any:
    """Points of the plane, turned and kept in a frame."""
    c, s = np.cos(angle), np.sin(angle)
    turned = points @ np.stack([np.stack([c, -s]), np.stack([s, c])]).T
    return np.clip(turned, -1.0, 1.0)


def cloud(points: Any, weights: Any) -> Any:
    """Points of space, seen from their centre of mass, at distance 1."""
    moved = points - (points * weights[:, None]).sum(axis=0) / weights.sum()
    return moved / np.sqrt((moved * moved).sum(axis=1))[:, None]


def poses(turns: Any, frames: Any, points: Any) -> Any:
    """Frames in space, turned, and where each has its point."""
    turned = turns @ frames
    return turned, (turned @ points[:, :, None])[:, :, 0], turned @ frames.transpose(0, 2, 1)


def mandelbrot(z: Any, c: Any, steps: Any) -> Any:
    """A step of z*z + c for what has not escaped."""
    inside = np.abs(z) <= 2
    return np.where(inside, z * z + c, z), steps + inside


def moving_average(x: Any) -> Any:
    """The mean of five neighbours, by running sums."""
    total = np.cumsum(np.concatenate([np.zeros(1), x]))
    return (total[5:] - total[:-5]) / 5


def kalman(x: Any, p: Any, z: Any, f: Any, h: Any, q: Any, r: Any) -> Any:
    """Prediction and update of a Kalman filter."""
    x, p = f @ x, f @ p @ f.T + q
    gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
    return x + gain @ (z - h @ x), p - gain @ h @ p


def programs(size: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs by name, with arguments of about `size` elements. The Kalman filter is always a small one."""
    rng = np.random.default_rng(0)
    side, some = max(round(size**0.5), 3), rng.uniform
    square = rng.normal(size=(side, side))
    plane = rng.normal(size=size) + 1j * rng.normal(size=size)
    matrix = np.eye(4) + 0.1 * rng.normal(size=(4, 4))
    return {
        "fir": (fir, (rng.normal(size=size),)),
        "heat": (heat, (rng.normal(size=size),)),
        "black_scholes": (black_scholes, (some(1, 2, size), some(1, 2, size), some(1, 2, size))),
        "kmeans": (kmeans, (rng.normal(size=(max(size // 10, 4), 3)), rng.normal(size=(4, 3)))),
        "softmax": (softmax, (square,)),
        "layer_norm": (layer_norm, (square, rng.normal(size=side), rng.normal(size=side))),
        "rotate": (rotate, (rng.normal(size=(size, 2)), np.array(0.3))),
        "cloud": (cloud, (rng.normal(size=(size, 3)), some(1, 2, size))),
        "poses": (poses, (rng.normal(size=(size, 3, 3)), rng.normal(size=(size, 3, 3)), rng.normal(size=(size, 3)))),
        "mandelbrot": (mandelbrot, (plane, plane[::-1].copy(), np.zeros(size, int))),
        "moving_average": (moving_average, (rng.normal(size=size),)),
        "kalman": (
            kalman,
            (rng.normal(size=4), np.eye(4), rng.normal(size=2), matrix, matrix[:2], np.eye(4) / 100, np.eye(2) / 10),
        ),
    }


def run(harness: Harness) -> list[Row]:
    """Every program at both sizes."""
    return [
        _row(harness, name, size, function, arguments)
        for size in (SIZES[:1] if harness.quick else SIZES)
        for name, (function, arguments) in programs(size).items()
        if size == SIZES[0] or name != "kalman"
    ]


def _row(harness: Harness, name: str, size: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Row:
    compiled = pyop.compile(function)
    compiled(*arguments)
    times = harness.compare(
        {
            "numpy": Statement("f(*a)", {"f": function, "a": arguments}, unroll=1),
            "pyop": Statement("f(*a)", {"f": compiled, "a": arguments}, unroll=1),
        }
    )
    ratio = times.ratio("pyop", "numpy")
    return Row(
        "P1",
        f"{name}, {size:,} elements, over NumPy",
        f"≤ 1/{FASTER[size]:g}",
        ratio,
        1 / FASTER[size],
        detail=f"{times.ns('pyop') / 1000:,.1f} µs, NumPy {times.ns('numpy') / 1000:,.1f} µs: "
        f"{1 / ratio:.2f} times faster",
    )
