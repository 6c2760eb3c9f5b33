"""Controllers and filters that run beside a machine."""

import math

import numpy as np

from .registry import program


def setpoints(r, n):
    levels = np.repeat(r.uniform(-2.0, 2.0, n // 100 + 1), 100)[:n]
    return levels, 2.0, 0.6, 0.05, 0.01


@program(setpoints, 2000)
def pid_with_anti_windup(target, kp, ki, kd, dt):
    """Follow set points with a PID controller whose integral stops where the actuator saturates."""
    y = 0.0
    integral = 0.0
    previous = 0.0
    saturated = 0
    out = np.zeros(len(target))
    command = np.zeros(len(target))
    for k in range(len(target)):
        error = target[k] - y
        derivative = (error - previous) / dt
        u = kp * error + ki * integral + kd * derivative
        if u > 5.0:
            u = 5.0
            saturated += 1
        elif u < -5.0:
            u = -5.0
            saturated += 1
        else:
            integral += error * dt
        previous = error
        y = y + dt * (-1.5 * y + u)
        out[k] = y
        command[k] = u
    return out, command, saturated


@program(lambda r, n: (15.0 + 8.0 * np.sin(np.arange(n) / 40.0) + r.normal(size=n), 20.0, 1.0), 3000)
def thermostat(outside, target, band):
    """Heat a house by a thermostat with hysteresis and a shortest time between switches."""
    temperature = target
    heating = False
    since = 0
    switches = 0
    energy = 0.0
    hottest = -1e9
    record = []
    for t in outside:
        since += 1
        if heating and temperature > target + band and since > 5:
            heating = False
            switches += 1
            since = 0
        elif not heating and temperature < target - band and since > 5:
            heating = True
            switches += 1
            since = 0
        temperature += 0.02 * (t - temperature)
        if heating:
            temperature += 0.5
            energy += 1.2
        if temperature > hottest:
            hottest = temperature
        record.append(temperature)
    return {"temperature": np.array(record), "switches": switches, "energy": energy, "hottest": hottest}


def gated(r, n):
    z = np.cumsum(r.normal(size=n) * 0.1) + r.normal(size=n)
    z[r.random(n) < 0.03] += 30.0
    z[r.random(n) < 0.02] = np.nan
    return z, 0.01, 1.0


@program(gated, 1500)
def kalman_with_gate(z, q, r):
    """Filter a level, leaving out missing values and outliers, and starting anew after many of these."""
    x = 0.0
    p = 100.0
    rejected = 0
    in_a_row = 0
    estimates = np.empty(len(z))
    for k in range(len(z)):
        p = p + q
        if np.isnan(z[k]):
            estimates[k] = x
            continue
        innovation = z[k] - x
        s = p + r
        if innovation * innovation > 16.0 * s:
            rejected += 1
            in_a_row += 1
            if in_a_row >= 3:
                x = z[k]
                p = 100.0
                in_a_row = 0
        else:
            gain = p / s
            x = x + gain * innovation
            p = (1.0 - gain) * p
            in_a_row = 0
        estimates[k] = x
    return estimates, p, rejected


@program(lambda r, n: (math.pi + float(r.uniform(-0.1, 0.1)), 0.0, n, 0.01), 3000)
def swing_up(theta, omega, steps, dt):
    """Swing up a pendulum by its energy, then balance it; stop once it has stood for a second."""
    standing = 0
    path = np.zeros((steps, 2))
    for k in range(steps):
        energy = 0.5 * omega**2 + 9.81 * (math.cos(theta) - 1.0)
        off = (theta + math.pi) % (2 * math.pi) - math.pi
        if abs(off) < 0.3 and abs(omega) < 2.0:
            torque = -30.0 * off - 8.0 * omega
            standing += 1
        else:
            standing = 0
            torque = 2.0 if omega * energy <= 0 else -2.0
        omega += dt * (9.81 * math.sin(theta) + torque - 0.05 * omega)
        theta += dt * omega
        path[k, 0] = theta
        path[k, 1] = omega
        if standing > 400:
            break
    return path[: k + 1], k, theta


class Gearbox:
    """An engine with gears, shifted up and down by the revolutions."""

    ratios = (3.6, 2.1, 1.4, 1.0, 0.8)

    def __init__(self, mass):
        self.mass = mass
        self.v = 1.0
        self.gear = 0
        self.shifts = 0

    def step(self, pedal, slope, dt):
        rpm = self.v * self.ratios[self.gear] * 120.0
        if rpm > 4500 and self.gear < len(self.ratios) - 1:
            self.gear += 1
            self.shifts += 1
        elif rpm < 1500 and self.gear > 0:
            self.gear -= 1
            self.shifts += 1
        force = pedal * 3000.0 * self.ratios[self.gear] / 2.0
        drag = 0.4 * self.v * self.v + 100.0 + self.mass * 9.81 * slope
        self.v = self.v + dt * (force - drag) / self.mass
        if self.v < 0.5:
            self.v = 0.5
        return self.v


def drive(r, n):
    return np.clip(0.5 + np.cumsum(r.normal(size=n)) * 0.03, 0, 1), 0.03 * np.sin(np.arange(n) / 150), 1200.0


@program(drive, 2000)
def gear_shifts(pedal, slope, mass):
    """Drive a car with an automatic gearbox over hills."""
    car = Gearbox(mass)
    speed = np.zeros(pedal.size)
    gears = np.zeros(pedal.size, dtype=int)
    for k in range(pedal.size):
        speed[k] = car.step(pedal[k], slope[k], 0.1)
        gears[k] = car.gear
    return speed, gears, car.shifts


@program(lambda r, n: (np.cumsum(r.normal(size=n)) * 0.2, np.linspace(-1.0, 1.0, 11)), 80)
def predictive_control(reference, candidates):
    """Choose at each step the input whose next five steps come nearest to the reference."""
    x = 0.0
    v = 0.0
    total = 0.0
    chosen = []
    for k in range(len(reference) - 5):
        best = float("inf")
        best_u = 0.0
        for u in candidates:
            xx, vv, cost = x, v, 0.05 * u * u
            for j in range(5):
                vv = 0.9 * vv + 0.5 * u
                xx = xx + 0.2 * vv
                cost += (reference[k + j] - xx) ** 2
                if cost > best:
                    break
            if cost < best:
                best = cost
                best_u = u
        v = 0.9 * v + 0.5 * best_u
        x = x + 0.2 * v
        total += best
        chosen.append(best_u)
    return np.array(chosen), x, total
