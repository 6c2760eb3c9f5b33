"""Infections in populations and networks."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: (100000.0, float(r.uniform(0.3, 0.5)), 0.1, n, 0.02, 0.005), 1500)
def sir_with_interventions(population, beta, gamma, days, close_at, open_at):
    """Run an SIR model in which contacts are closed and opened by the share of the infected."""
    s, i, r = population - 10.0, 10.0, 0.0
    locked = False
    lockdowns = 0
    days_locked = 0
    peak, peak_day = 0.0, 0
    history = np.zeros((days, 3))
    for day in range(days):
        share = i / population
        if not locked and share > close_at:
            locked = True
            lockdowns += 1
        elif locked and share < open_at:
            locked = False
        rate = beta * 0.3 if locked else beta
        if locked:
            days_locked += 1
        infected = rate * s * i / population
        recovered = gamma * i
        s -= infected
        i += infected - recovered
        r += recovered
        if i > peak:
            peak = i
            peak_day = day
        history[day] = s, i, r
        if i < 0.5:
            break
    return history[: day + 1], {"peak": peak, "day": peak_day, "lockdowns": lockdowns, "locked": days_locked}


@program(lambda r, n: (r.random((n, 2)), 200, 0.4, 0.1), 1500)
def gillespie_sir(uniform, population, beta, gamma):
    """Draw infections and recoveries one by one from given random numbers."""
    s, i, r = population - 5, 5, 0
    t = 0.0
    times = [0.0]
    infected = [i]
    for k in range(len(uniform)):
        a1 = beta * s * i / population
        a2 = gamma * i
        total = a1 + a2
        if total == 0:
            break
        t += -math.log(1.0 - uniform[k, 0]) / total
        if uniform[k, 1] * total < a1:
            s -= 1
            i += 1
        else:
            i -= 1
            r += 1
        times.append(t)
        infected.append(i)
    return np.array(times), np.array(infected), (s, i, r)


def network(r, n):
    adjacency = r.random((n, n)) < 4.0 / n
    return adjacency | adjacency.T, r.random((40, n)), 0.3, 5


@program(network, 60)
def network_contagion(adjacency, chance, p, duration):
    """Spread an infection over a network, each node ill for some days."""
    n = adjacency.shape[0]
    days_left = [0] * n
    immune = [False] * n
    days_left[0] = duration
    curve = []
    for day in range(chance.shape[0]):
        newly = []
        for v in range(n):
            if days_left[v] > 0 or immune[v]:
                continue
            for w in range(n):
                if adjacency[v, w] and days_left[w] > 0 and chance[day, v] < p:
                    newly.append(v)
                    break
        ill = 0
        for v in range(n):
            if days_left[v] > 0:
                days_left[v] -= 1
                if days_left[v] == 0:
                    immune[v] = True
                else:
                    ill += 1
        for v in newly:
            days_left[v] = duration
        curve.append(ill + len(newly))
        if curve[-1] == 0:
            break
    return curve, sum(immune)


def ages(r, n):
    return np.array([3e4, 5e4, 2e4]), r.uniform(0.05, 0.25, (3, 3)), n


@program(ages, 400)
def age_structured_seir(population, contacts, days):
    """Run SEIR in three ages, vaccinating the oldest first."""
    s = population - 5.0
    e = np.full(3, 5.0)
    i = np.zeros(3)
    r = np.zeros(3)
    doses = 0.0
    deaths = 0.0
    fatality = np.array([1e-4, 1e-3, 2e-2])
    incidence = []
    for day in range(days):
        force = contacts @ (i / population)
        new_e = np.minimum(force * s, s)
        new_i = e / 4.0
        out = i / 7.0
        if day > 60:
            available = 400.0
            for group in (2, 1, 0):
                given = min(available, s[group] * 0.5)
                s[group] -= given
                r[group] += given
                available -= given
                doses += given
                if available <= 0:
                    break
        s = s - new_e
        e = e + new_e - new_i
        i = i + new_i - out
        r = r + out
        deaths += float(np.sum(out * fatality))
        incidence.append(new_i.sum())
    return np.array(incidence), doses, deaths


def cases(r, n):
    return np.round(50 * np.exp(0.3 * np.sin(np.arange(n) / 15.0)) + r.normal(size=n)), r.uniform(1.0, 3.0)


@program(cases, 60)
def reproduction_number(daily, mean_interval):
    """Estimate the reproduction number of each day from the serial interval, by bisection."""
    weights = [math.exp(-k / mean_interval) for k in range(1, 15)]
    norm = sum(weights)
    weights = [w / norm for w in weights]
    estimates = []
    for t in range(14, len(daily)):
        pressure = 0.0
        for k in range(14):
            pressure += daily[t - k - 1] * weights[k]
        if pressure <= 0:
            estimates.append(float("nan"))
            continue
        low, high = 0.0, 10.0
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            score = daily[t] / middle - pressure if middle > 0 else 1.0
            if score > 0:
                low = middle
            else:
                high = middle
        estimates.append(0.5 * (low + high))
    return np.array(estimates)
