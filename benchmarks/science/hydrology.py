"""Rain, rivers and reservoirs."""

import numpy as np

from .registry import program


def weather(r, n):
    rain = np.where(r.random(n) < 0.3, r.exponential(8.0, n), 0.0)
    return rain, 2.0 + 1.5 * np.sin(np.arange(n) / 58.0)


@program(lambda r, n: (*weather(r, n), 80.0, 0.05), 1500)
def bucket_model(rain, evaporation, capacity, k):
    """Fill a bucket with rain, let it evaporate, spill and drain."""
    storage = capacity / 2
    runoff = np.zeros_like(rain)
    dry = 0
    longest = 0
    spilled = 0.0
    for t in range(rain.size):
        storage += rain[t]
        wet = storage / capacity
        if wet > 1:
            wet = 1.0
        e = evaporation[t] * wet
        storage = max(storage - e, 0.0)
        quick = 0.0
        if storage > capacity:
            quick = storage - capacity
            storage = capacity
            spilled += quick
        slow = k * storage
        storage -= slow
        runoff[t] = quick + slow
        if rain[t] == 0:
            dry += 1
            if dry > longest:
                longest = dry
        else:
            dry = 0
    return runoff, storage, spilled, longest


@program(lambda r, n: (weather(r, n)[0], np.array([0.1, 0.3, 0.25, 0.15, 0.1, 0.06, 0.04])), 400)
def unit_hydrograph(rain, ordinates):
    """Route effective rain, less a loss that recovers in dry hours, through a unit hydrograph."""
    flow = np.zeros(len(rain) + len(ordinates) - 1)
    loss = 5.0
    for t in range(len(rain)):
        effective = rain[t] - loss
        if effective <= 0:
            loss = min(loss + 0.2, 10.0)
            continue
        loss = max(loss * 0.8, 1.0)
        for j in range(len(ordinates)):
            flow[t + j] += effective * ordinates[j]
    peak = 0.0
    when = -1
    for t in range(len(flow)):
        if flow[t] > peak:
            peak = flow[t]
            when = t
    return flow, peak, when


@program(lambda r, n: (20 + 10 * np.abs(np.cumsum(r.normal(size=n))) ** 0.5, 6, 2.0, 0.2, 1.0), 400)
def muskingum_routing(inflow, reaches, k, x, dt):
    """Route a flood through reaches one after the other."""
    d = 2 * k * (1 - x) + dt
    c0 = (dt - 2 * k * x) / d
    c1 = (dt + 2 * k * x) / d
    c2 = (2 * k * (1 - x) - dt) / d
    upstream = inflow
    highest = []
    for _ in range(reaches):
        out = np.empty(len(upstream))
        out[0] = upstream[0]
        top = out[0]
        for t in range(1, len(upstream)):
            q = c0 * upstream[t] + c1 * upstream[t - 1] + c2 * out[t - 1]
            if q < 0:
                q = 0.0
            out[t] = q
            if q > top:
                top = q
        highest.append(top)
        upstream = out
    return upstream, highest


def winter(r, n):
    t = np.arange(n)
    return weather(r, n)[0], -8.0 * np.cos(2 * np.pi * t / 365.0) + 3.0 + r.normal(size=n) * 3.0


@program(winter, 1500)
def degree_day_snow(precipitation, temperature):
    """Keep a snow pack that refreezes, ripens and melts with degree days."""
    ice, water = 0.0, 0.0
    melt_factor = 3.0
    series = []
    days_with_snow = 0
    first_snow_free = None
    for p, t in zip(precipitation, temperature):
        if t < -1.0:
            ice += p
            rain = 0.0
        elif t > 2.0:
            rain = p
        else:
            fraction = (2.0 - t) / 3.0
            ice += p * fraction
            rain = p * (1 - fraction)
        if t > 0:
            melt = min(ice, melt_factor * t)
            ice -= melt
            water += melt + rain
        else:
            frozen = min(water, -0.5 * t)
            water -= frozen
            ice += frozen
            water += rain
        hold = 0.1 * ice
        out = 0.0
        if water > hold:
            out = water - hold
            water = hold
        if ice > 0:
            days_with_snow += 1
        elif first_snow_free is None and days_with_snow > 0:
            first_snow_free = len(series)
        series.append(out)
    return np.array(series), ice, days_with_snow, first_snow_free


class Reservoir:
    """Water behind a dam."""

    def __init__(self, capacity, dead):
        self.capacity = capacity
        self.dead = dead
        self.storage = 0.6 * capacity
        self.spills = 0
        self.failures = 0

    def release(self, inflow, demand):
        available = self.storage + inflow - self.dead
        if available < demand:
            out = max(0.0, 0.7 * available)
            self.failures += 1
        else:
            out = demand
        self.storage = self.storage + inflow - out
        if self.storage > self.capacity:
            out += self.storage - self.capacity
            self.storage = self.capacity
            self.spills += 1
        return out


@program(lambda r, n: (r.gamma(2.0, 10.0, n), 20 + 8 * np.sin(np.arange(n) / 6.0), 150.0), 2000)
def operate_reservoir(inflow, demand, capacity):
    """Run a reservoir by the standard policy, hedged when it is low."""
    dam = Reservoir(capacity, 10.0)
    releases = np.zeros(len(inflow))
    lowest = capacity
    for t in range(len(inflow)):
        wanted = demand[t]
        if dam.storage < 0.3 * capacity:
            wanted *= 0.8
        releases[t] = dam.release(inflow[t], wanted)
        lowest = min(lowest, dam.storage)
    reliability = 1.0 - dam.failures / len(inflow)
    return releases, reliability, dam.spills, lowest


@program(lambda r, n: (r.uniform(0, 30, n), 5.0, 110.0, 0.3, 0.1), 250)
def green_ampt(rain, conductivity, suction, deficit, dt):
    """Let rain infiltrate after Green and Ampt, solved by Newton's method in each step."""
    total = 0.1
    excess = np.zeros(len(rain))
    ponded_steps = 0
    iterations = 0
    for i in range(len(rain)):
        capacity = conductivity * (1 + suction * deficit / total)
        if rain[i] <= capacity:
            total += rain[i] * dt
            continue
        ponded_steps += 1
        new = total + conductivity * dt
        sd = suction * deficit
        while True:
            iterations += 1
            g = new - total - sd * np.log((new + sd) / (total + sd)) - conductivity * dt
            step = g / (1 - sd / (new + sd))
            new -= step
            if abs(step) < 1e-9 or iterations > 100000:
                break
        infiltrated = min(new - total, rain[i] * dt)
        excess[i] = rain[i] * dt - infiltrated
        total += infiltrated
    return excess, total, ponded_steps, iterations
