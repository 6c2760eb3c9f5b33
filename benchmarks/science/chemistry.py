"""Reactions, one after another or as rates."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: (r.random(n), r.random(n), (100, 30, 0), (0.01, 0.1, 0.05)), 1500)
def gillespie_enzyme(u1, u2, start, rates):
    """Draw the reactions of an enzyme one by one from given random numbers."""
    substrate, enzyme, bound = start
    product = 0
    t = 0.0
    fired = [0, 0, 0]
    trace = []
    for a, b in zip(u1, u2):
        propensity = [rates[0] * substrate * enzyme, rates[1] * bound, rates[2] * bound]
        total = sum(propensity)
        if total <= 0.0:
            break
        t -= math.log(1.0 - a) / total
        pick = b * total
        k = 0
        while k < 2 and pick > propensity[k]:
            pick -= propensity[k]
            k += 1
        fired[k] += 1
        if k == 0:
            substrate, enzyme, bound = substrate - 1, enzyme - 1, bound + 1
        elif k == 1:
            substrate, enzyme, bound = substrate + 1, enzyme + 1, bound - 1
        else:
            enzyme, bound, product = enzyme + 1, bound - 1, product + 1
        trace.append((t, substrate, product))
    return np.array(trace), fired, t


def brusselator(y, a, b):
    return np.array([a + y[0] ** 2 * y[1] - (b + 1) * y[0], b * y[0] - y[0] ** 2 * y[1]])


@program(lambda r, n: (r.uniform(0.5, 2.0, 2), 1.0, 3.0, float(n), 1e-7), 8)
def rkf45_brusselator(y, a, b, t_end, tolerance):
    """Integrate an oscillating reaction by Runge, Kutta and Fehlberg, with steps that adapt."""
    t = 0.0
    h = 0.01
    accepted = rejected = 0
    times = [t]
    states = [y]
    while t < t_end:
        if t + h > t_end:
            h = t_end - t
        k1 = h * brusselator(y, a, b)
        k2 = h * brusselator(y + k1 / 4, a, b)
        k3 = h * brusselator(y + 3 * k1 / 32 + 9 * k2 / 32, a, b)
        k4 = h * brusselator(y + 1932 * k1 / 2197 - 7200 * k2 / 2197 + 7296 * k3 / 2197, a, b)
        k5 = h * brusselator(y + 439 * k1 / 216 - 8 * k2 + 3680 * k3 / 513 - 845 * k4 / 4104, a, b)
        k6 = h * brusselator(y - 8 * k1 / 27 + 2 * k2 - 3544 * k3 / 2565 + 1859 * k4 / 4104 - 11 * k5 / 40, a, b)
        y4 = y + 25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5
        y5 = y + 16 * k1 / 135 + 6656 * k3 / 12825 + 28561 * k4 / 56430 - 9 * k5 / 50 + 2 * k6 / 55
        error = np.max(np.abs(y5 - y4))
        if error <= tolerance:
            t += h
            y = y5
            accepted += 1
            times.append(t)
            states.append(y)
        else:
            rejected += 1
        if error == 0:
            h *= 4
        else:
            h *= min(4.0, max(0.1, 0.84 * (tolerance / error) ** 0.25))
        if accepted + rejected > 5000:
            raise RuntimeError("too many steps")
    return np.array(times), np.array(states), accepted, rejected


@program(lambda r, n: (np.linspace(0.0, 50.0, n), 25.0, 0.1, 0.1, 10.0 ** -r.uniform(3, 6)), 60)
def titration_curve(volumes, start, acid, base, ka):
    """Find the pH while a weak acid is titrated, by bisection of the balance of charges."""
    kw = 1e-14
    ph = []
    equivalence = None
    steepest = 0.0
    for k, volume in enumerate(volumes):
        total = start + volume
        ca = acid * start / total
        cb = base * volume / total
        low, high = 0.0, 14.0
        for _ in range(200):
            middle = (low + high) / 2
            h = 10.0**-middle
            charge = h + cb - kw / h - ca * ka / (ka + h)
            if abs(charge) < 1e-12 or high - low < 1e-10:
                break
            if charge > 0:
                low = middle
            else:
                high = middle
        ph.append(middle)
        if k > 0:
            slope = ph[k] - ph[k - 1]
            if slope > steepest:
                steepest = slope
                equivalence = float(volume)
    return {"pH": np.array(ph), "equivalence": equivalence, "steepest": steepest}


@program(lambda r, n: (n, float(r.uniform(8e4, 1e5)), 1e13, 5.0, 300.0), 1500)
def desorption(steps, energy, prefactor, heating, temperature):
    """Heat a covered surface until it is empty, and find the peak of desorption."""
    coverage = 1.0
    dt = 0.05
    peak_rate = 0.0
    peak_temperature = 0.0
    order = "first"
    rates = np.zeros(steps)
    for k in range(steps):
        constant = prefactor * math.exp(-energy / (8.314 * temperature))
        if order == "first":
            rate = constant * coverage
        else:
            rate = constant * coverage**2
        if rate * dt > coverage:
            rate = coverage / dt
        coverage -= rate * dt
        rates[k] = rate
        if rate > peak_rate:
            peak_rate, peak_temperature = rate, temperature
        if coverage < 0.3 and order == "first":
            order = "second"
        if coverage < 1e-6:
            break
        temperature += heating * dt
    return rates, coverage, peak_temperature, order


def lattice(r, n):
    return r.random((n, n)) < 0.3, r.integers(0, n, (1500, 2)), r.integers(0, 4, 1500), r.random(1500), 0.4


@program(lattice, 24)
def surface_diffusion(occupied, sites, directions, chance, binding):
    """Let atoms hop on a surface, held back by their neighbours."""
    n = len(occupied)
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))
    hops = blocked = empty = 0
    for k in range(len(sites)):
        i, j = sites[k]
        if not occupied[i, j]:
            empty += 1
            continue
        di, dj = moves[directions[k]]
        a, b = (i + di) % n, (j + dj) % n
        if occupied[a, b]:
            blocked += 1
            continue
        neighbours = 0
        for ei, ej in moves:
            if occupied[(i + ei) % n, (j + ej) % n]:
                neighbours += 1
        if chance[k] < math.exp(-binding * neighbours):
            occupied[i, j] = False
            occupied[a, b] = True
            hops += 1
    return hops, blocked, empty
