"""Orbits, light curves and catalogues."""

import math

import numpy as np

from .registry import program


def kepler(mean_anomaly, e, tolerance=1e-12):
    if e > 0.8:
        x = math.pi
    else:
        x = mean_anomaly
    for k in range(50):
        f = x - e * math.sin(x) - mean_anomaly
        step = f / (1.0 - e * math.cos(x))
        x -= step
        if abs(step) < tolerance:
            return x, k + 1
    return x, 50


@program(lambda r, n: (np.sort(r.uniform(0, 30, n)), 5.3, float(r.uniform(0.1, 0.9)), 1.2, 40.0), 400)
def radial_velocity(times, period, e, omega, amplitude):
    """Compute velocities of a star by solving Kepler's equation for each time."""
    out = np.empty_like(times)
    most = 0
    for i in range(len(times)):
        m = 2 * math.pi * ((times[i] / period) % 1.0)
        x, iterations = kepler(m, e)
        if iterations > most:
            most = iterations
        true = 2 * math.atan2(math.sqrt(1 + e) * math.sin(x / 2), math.sqrt(1 - e) * math.cos(x / 2))
        out[i] = amplitude * (math.cos(true + omega) + e * math.cos(omega))
    return out, most


def light_curve(r, n):
    t = np.arange(n) * 0.02
    flux = 1.0 + 0.001 * r.normal(size=n)
    flux[(t % 3.1) < 0.12] -= 0.01
    return t, flux, 3.0, 3


@program(light_curve, 4000)
def find_transits(time, flux, sigmas, shortest):
    """Find dips in a light curve, joined over short gaps."""
    mean = np.mean(flux)
    deviation = np.std(flux)
    limit = mean - sigmas * deviation
    dips = []
    begin = None
    gap = 0
    deepest = 0.0
    for k in range(len(flux)):
        if flux[k] < limit:
            if begin is None:
                begin = k
                deepest = flux[k]
            gap = 0
            last = k
            deepest = min(deepest, flux[k])
        elif begin is not None:
            gap += 1
            if gap > 2:
                if last - begin + 1 >= shortest:
                    dips.append({"start": time[begin], "end": time[last], "depth": mean - deepest})
                begin = None
    if len(dips) > 1:
        period = (dips[-1]["start"] - dips[0]["start"]) / (len(dips) - 1)
    else:
        period = None
    return dips, period


@program(lambda r, n: (np.concatenate([r.normal(10, 1, n), r.uniform(-50, 80, n // 20)]), 3.0, 10), 1500)
def sigma_clip(values, sigmas, most):
    """Throw out outliers again and again, until none is left."""
    keep = [True] * len(values)
    n = len(values)
    for iteration in range(most):
        total = 0.0
        count = 0
        for i in range(n):
            if keep[i]:
                total += values[i]
                count += 1
        mean = total / count
        squares = 0.0
        for i in range(n):
            if keep[i]:
                squares += (values[i] - mean) ** 2
        deviation = math.sqrt(squares / count)
        changed = False
        for i in range(n):
            if keep[i] and abs(values[i] - mean) > sigmas * deviation:
                keep[i] = False
                changed = True
        if not changed:
            break
    return mean, deviation, iteration, np.array(keep)


def folded(r, n):
    t = np.sort(r.uniform(0, 40, n))
    return t, np.sin(2 * np.pi * t / 2.7) + 0.3 * r.normal(size=n), np.linspace(2.0, 3.5, 12), 8


@program(folded, 150)
def phase_dispersion(times, values, periods, n_bins):
    """Find the period at which folded values scatter least."""
    best = None
    least = 1e300
    for period in periods:
        sums = [0.0] * n_bins
        squares = [0.0] * n_bins
        counts = [0] * n_bins
        for t, v in zip(times, values):
            b = int((t / period) % 1.0 * n_bins)
            sums[b] += v
            squares[b] += v * v
            counts[b] += 1
        scatter = 0.0
        freedom = 0
        for b in range(n_bins):
            if counts[b] > 1:
                scatter += squares[b] - sums[b] ** 2 / counts[b]
                freedom += counts[b] - 1
        if freedom == 0:
            continue
        theta = scatter / freedom
        if theta < least:
            least = theta
            best = period
    return best, least


@program(lambda r, n: (r.random((n, 3)), 0.12), 60)
def friends_of_friends(positions, link):
    """Group galaxies that are linked by short distances."""
    n = len(positions)
    group = [-1] * n
    sizes = []
    for seed in range(n):
        if group[seed] >= 0:
            continue
        label = len(sizes)
        group[seed] = label
        queue = [seed]
        size = 0
        while len(queue) > 0:
            i = queue.pop(0)
            size += 1
            for j in range(n):
                if group[j] >= 0:
                    continue
                d2 = 0.0
                for k in range(3):
                    d2 += (positions[i, k] - positions[j, k]) ** 2
                if d2 < link * link:
                    group[j] = label
                    queue.append(j)
        sizes.append(size)
    return np.array(group), sizes, max(sizes)
