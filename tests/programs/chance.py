"""Monte Carlo with numbers that are given, and prices of options."""

import math

import numpy as np

from .registry import kernel


@kernel(lambda r, n: (r.uniform(size=(n, 2)),), 10, 20000)
def darts(points):
    """Pi by darts, as it gets better."""
    inside = (points**2).sum(axis=1) <= 1.0
    return 4.0 * np.cumsum(inside) / np.arange(1, len(points) + 1)


@kernel(lambda r, steps, paths: (100.0, 105.0, 0.03, 0.2, r.normal(size=(steps, paths))), (4, 6), (100, 500))
def asian_option(spot, strike, rate, volatility, noise):
    """The price of an option on a mean, path by path at once, step by step."""
    steps, paths = noise.shape
    dt = 1.0 / steps
    price = np.full(paths, spot)
    total = np.zeros(paths)
    for k in range(steps):
        price *= np.exp((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * noise[k])
        total += price
    payoff = np.maximum(total / steps - strike, 0.0)
    return math.exp(-rate) * payoff.mean(), payoff.std() / np.sqrt(paths)


@kernel(lambda r, steps: (100.0 + r.normal(), 100.0, 0.05, 0.3, steps), 5, 150)
def american_put(spot, strike, rate, volatility, steps):
    """An option that may be taken at any time, on a tree of prices, from its leaves."""
    dt = 1.0 / steps
    up = np.exp(volatility * np.sqrt(dt))
    down = 1 / up
    p = (np.exp(rate * dt) - down) / (up - down)
    discount = np.exp(-rate * dt)
    prices = spot * up ** np.arange(steps, -1, -1) * down ** np.arange(0, steps + 1)
    values = np.maximum(strike - prices, 0)
    for _ in range(steps):
        values = discount * (p * values[:-1] + (1 - p) * values[1:])
        prices = prices[:-1] * down
        values = np.maximum(values, strike - prices)
    return values[0]


@kernel(lambda r, n: (0.5, r.normal(size=n), r.uniform(size=n)), 6, 1000)
def metropolis(start, steps, chances):
    """A walk that samples a density: a step is taken or is not."""
    x = start
    density = -0.25 * x**4 + x**2
    samples = np.zeros(len(steps))
    accepted = 0
    for i in range(len(steps)):
        candidate = x + 0.8 * steps[i]
        new = -0.25 * candidate**4 + candidate**2
        if np.log(chances[i]) < new - density:
            x, density = candidate, new
            accepted += 1
        samples[i] = x
    return samples, accepted


@kernel(lambda r, sweeps, n: (r.choice([-1, 1], size=(n, n)), r.uniform(size=(sweeps, n, n)), 0.4), (2, 4), (4, 24))
def ising(spins, chances, beta):
    """Spins of a magnet, flipped one by one where chance allows."""
    n = spins.shape[0]
    energy = np.zeros(len(chances))
    for sweep, chance in enumerate(chances):
        for i in range(n):
            for j in range(n):
                around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
                cost = 2 * spins[i, j] * around
                if cost <= 0 or chance[i, j] < np.exp(-beta * cost):
                    spins[i, j] *= -1
        energy[sweep] = -(spins * np.roll(spins, 1, 0) + spins * np.roll(spins, 1, 1)).sum()
    return energy


@kernel(lambda r, levels: (r.normal(size=2**levels + 1),), 3, 10)
def brownian_bridge(noise):
    """A path that is filled in at middles of middles, by slices with steps."""
    path = np.zeros_like(noise)
    path[-1] = noise[-1]
    step = len(noise) - 1
    while step > 1:
        half = step // 2
        path[half::step] = 0.5 * (path[:-1:step] + path[step::step]) + 0.5 * np.sqrt(half) * noise[half::step]
        step = half
    return path


@kernel(
    lambda r, n, steps: (r.normal(size=n), r.normal(size=(steps, n)), r.normal(size=steps), r.uniform(size=steps)),
    (6, 3),
    (300, 60),
)
def particle_filter(particles, noise, seen, starts):
    """Particles that are weighted by what is seen, and drawn again by their weights."""
    n = len(particles)
    estimates = np.empty(len(seen))
    for t, z in enumerate(seen):
        particles = 0.9 * particles + noise[t]
        weights = np.exp(-0.5 * (z - particles) ** 2)
        weights /= weights.sum()
        estimates[t] = weights @ particles
        places = (np.arange(n) + starts[t]) / n
        chosen = np.searchsorted(np.cumsum(weights), places)
        chosen[chosen == n] = n - 1
        particles = particles[chosen]
    return estimates, particles
