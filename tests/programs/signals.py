"""Transforms, sums over curves, sets in the complex plane."""

import numpy as np

from .registry import kernel


@kernel(lambda r, n, steps: (-2.0 + 0.1 * r.uniform(), 0.5, -1.2, 1.2, n, steps), (6, 8), (100, 30))
def mandelbrot_by_masks(left, right, bottom, top, n, steps):
    """Who escapes and when, of a grid, by masks."""
    x = np.linspace(left, right, n)
    y = np.linspace(bottom, top, n)
    c = x + y[:, None] * 1j
    counts = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for k in range(steps):
        inside = np.abs(z) < 2.0
        counts[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    counts[counts == steps - 1] = 0
    return z, counts


@kernel(lambda r, n, steps: (r.normal(size=n) + 1j * r.normal(size=n), steps), (6, 8), (40, 100))
def escape_times(points, limit):
    """The same, point by point, with a while."""
    out = np.zeros(points.shape, dtype=np.int32)
    for i in range(len(points)):
        z = 0j
        c = points[i]
        k = 0
        while abs(z) <= 2 and k < limit:
            z = z * z + c
            k += 1
        out[i] = k
    return out


@kernel(lambda r, n, steps: (n, steps, -0.8 + 0.1j * r.normal()), (6, 5), (100, 40))
def julia(n, steps, c):
    """What is left on a grid that shrinks to those who have not escaped."""
    y, x = np.mgrid[-1.5 : 1.5 : n * 1j, -1.5 : 1.5 : n * 1j]
    z = (x + 1j * y).ravel()
    alive = np.arange(z.size)
    counts = np.zeros(z.size, dtype=int)
    for _ in range(steps):
        z = z * z + c
        stay = np.abs(z) <= 2
        z, alive = z[stay], alive[stay]
        counts[alive] += 1
    return counts.reshape(n, n)


@kernel(lambda r, k: (r.normal(size=2**k) + 1j * r.normal(size=2**k),), 3, 11)
def stockham_fft(x):
    """The fast Fourier transform, radix two, between two buffers."""
    n = len(x)
    source, target = x.copy(), np.empty_like(x)
    half, stride = n // 2, 1
    while half >= 1:
        twiddle = np.exp(-1j * np.pi * np.arange(half) / half)
        for p in range(half):
            a = source[stride * p : stride * (p + 1)]
            b = source[stride * (p + half) : stride * (p + half + 1)]
            target[2 * stride * p : stride * (2 * p + 1)] = a + b
            target[stride * (2 * p + 1) : stride * (2 * p + 2)] = (a - b) * twiddle[p]
        source, target = target, source
        half //= 2
        stride *= 2
    return source


@kernel(lambda r, n: (r.normal(size=n),), 6, 64)
def slow_fourier(x):
    """Fourier's sums as they are defined."""
    n = len(x)
    out = np.zeros(n, dtype=complex)
    for k in range(n):
        for t in range(n):
            out[k] += x[t] * np.exp(-2j * np.pi * k * t / n)
    return out


@kernel(
    lambda r, n, m, points: (
        r.normal(size=(2, n, n)),
        r.normal(size=(n, m)),
        np.exp(2j * np.pi * np.arange(points) / points),
    ),
    (3, 2, 4),
    (20, 10, 12),
)
def contour_integral(hamiltonians, start, points):
    """Moments of an inverse along a circle in the complex plane."""
    p0 = np.zeros(start.shape, dtype=np.complex128)
    p1 = np.zeros(start.shape, dtype=np.complex128)
    for z in points:
        t = np.zeros(hamiltonians.shape[1:], dtype=np.complex128)
        for k in range(len(hamiltonians)):
            t += z ** (k - 1) * hamiltonians[k]
        x = np.linalg.solve(t + 5 * np.eye(len(t)), start)
        if abs(z) < 1.0:
            x = -x
        p0 += x
        p1 += z * x
    return p0, p1


@kernel(lambda r, n, m: (r.normal(size=n), r.normal(size=m)), (8, 3), (1500, 40))
def cross_correlation(x, y):
    """Products at every lag, and the lag where they fit best."""
    lags = len(x) - len(y) + 1
    out = np.zeros(lags)
    for lag in range(lags):
        part = x[lag : lag + len(y)]
        out[lag] = np.sum((part - part.mean()) * (y - y.mean())) / (part.std() * y.std() * len(y))
    return out, np.argmax(out)


def bump(x):
    return np.exp(-(x**2)) * np.cos(3 * x)


@kernel(lambda r, levels: (r.uniform(-1, 0), 2.0, levels), 4, 12)
def romberg(a, b, levels):
    """An integral by halving, the triangle of better guesses kept."""
    table = np.zeros((levels, levels))
    h = b - a
    table[0, 0] = 0.5 * h * (bump(a) + bump(b))
    for i in range(1, levels):
        h /= 2
        middles = a + h * np.arange(1, 2**i, 2)
        table[i, 0] = 0.5 * table[i - 1, 0] + h * bump(middles).sum()
        for j in range(1, i + 1):
            table[i, j] = table[i, j - 1] + (table[i, j - 1] - table[i - 1, j - 1]) / (4**j - 1)
    return table[-1, -1]


@kernel(lambda r, n: (r.normal(size=n), 0.1, 0.2, 0.1, -0.5, 0.2), 6, 4000)
def biquad(x, b0, b1, b2, a1, a2):
    """A filter of second order, its memory in four numbers."""
    y = np.zeros_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        y[n] = b0 * x[n] + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1 = x1, x[n]
        y2, y1 = y1, y[n]
    return y


@kernel(lambda r, n, m: (r.normal(size=n), r.normal(size=m)), (5, 6), (30, 5000))
def horner(coefficients, x):
    """A polynomial and its slope, by one accumulator each."""
    value = np.zeros_like(x)
    slope = np.zeros_like(x)
    for c in coefficients[::-1]:
        slope *= x
        slope += value
        value *= x
        value += c
    return value, slope


@kernel(
    lambda r, n, k: (r.normal(size=(k, n, n)), r.normal(size=(n, n)), r.integers(0, k, size=(n, 3))), (3, 4), (12, 20)
)
def self_energies(green, coupling, neighbours):
    """Scattering: products that are added up at neighbours' places."""
    out = np.zeros_like(green)
    for i in range(neighbours.shape[0]):
        for j in range(neighbours.shape[1]):
            k = neighbours[i, j]
            out[k] += coupling @ green[k] @ coupling.T
            out[k, i, i] *= 0.5
    return out
