"""Particles, fields and lattices."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: (r.random(n), r.normal(size=n) * 0.1, 32, 0.05, 3), 400)
def particle_in_cell(x, v, cells, dt, steps):
    """Move charges in the field they make, deposited on a periodic grid in proportion."""
    n = len(x)
    energy = []
    for _ in range(steps):
        rho = np.zeros(cells)
        for p in range(n):
            s = x[p] * cells
            i = int(s)
            f = s - i
            rho[i % cells] += 1.0 - f
            rho[(i + 1) % cells] += f
        rho = rho * cells / n - 1.0
        field = np.zeros(cells)
        for c in range(1, cells):
            field[c] = field[c - 1] + 0.5 * (rho[c] + rho[c - 1]) / cells
        field -= field.mean()
        kinetic = 0.0
        for p in range(n):
            i = int(x[p] * cells) % cells
            v[p] -= dt * field[i]
            x[p] += dt * v[p]
            if x[p] < 0.0:
                x[p] += 1.0
            elif x[p] >= 1.0:
                x[p] -= 1.0
            kinetic += 0.5 * v[p] * v[p]
        energy.append(kinetic / n + 0.5 * float(np.mean(field**2)))
    return np.array(energy), rho


@program(lambda r, n: (np.zeros(3), r.normal(size=3), 0.05, n), 250)
def boris_push(x, v, dt, steps):
    """Push a charge through a magnetic bottle until it is lost."""
    track = np.zeros((steps, 3))
    turns = 0
    last_sign = 1
    for k in range(steps):
        b = np.array([-0.1 * x[0] * x[2], -0.1 * x[1] * x[2], 1.0 + 0.1 * x[2] ** 2])
        e = np.array([0.01, 0.0, 0.0])
        half = v + 0.5 * dt * e
        t = 0.5 * dt * b
        s = 2.0 * t / (1.0 + t @ t)
        v = half + np.cross(half + np.cross(half, t), s) + 0.5 * dt * e
        x = x + dt * v
        track[k] = x
        sign = 1 if v[2] >= 0 else -1
        if sign != last_sign:
            turns += 1
            last_sign = sign
        if abs(x[2]) > 10:
            return track[: k + 1], turns, "lost"
    return track, turns, "kept"


def bodies(r, n):
    return r.normal(size=(n, 3)), 0.1 * r.normal(size=(n, 3)), r.uniform(0.5, 1.5, n), 0.01, 4


@program(bodies, 14)
def leapfrog(pos, vel, mass, dt, steps):
    """Let bodies attract each other, kick, drift and kick."""
    n = len(mass)

    def accelerations(p):
        acc = np.zeros_like(p)
        for i in range(n):
            for j in range(i + 1, n):
                d = p[j] - p[i]
                r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-2
                inv = 1.0 / (r2 * math.sqrt(r2))
                acc[i] += mass[j] * d * inv
                acc[j] -= mass[i] * d * inv
        return acc

    a = accelerations(pos)
    for _ in range(steps):
        vel = vel + 0.5 * dt * a
        pos = pos + dt * vel
        a = accelerations(pos)
        vel = vel + 0.5 * dt * a
    kinetic = 0.5 * np.sum(mass * np.sum(vel**2, axis=1))
    return pos, vel, kinetic


@program(lambda r, n: (r.choice([-1, 1], (n, n)), r.random(600), r.integers(0, n, (600, 2)), 0.44), 20)
def ising_metropolis(spins, chance, sites, beta):
    """Flip spins by Metropolis' rule at given places."""
    n = spins.shape[0]
    table = {4: math.exp(-4 * beta), 8: math.exp(-8 * beta)}
    accepted = 0
    m = int(spins.sum())
    magnetisation = []
    for k in range(len(chance)):
        i, j = sites[k]
        around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        de = 2 * spins[i, j] * around
        if de <= 0 or chance[k] < table[int(de)]:
            spins[i, j] = -spins[i, j]
            m += 2 * int(spins[i, j])
            accepted += 1
        if k % 100 == 0:
            magnetisation.append(m)
    return magnetisation, accepted / len(chance)


@program(lambda r, n: (r.random((n, 2)) * 5.0, r.normal(size=(n, 2)) * 0.1, 5.0, 1.5), 35)
def lennard_jones(x, v, box, cutoff):
    """Take three steps of velocity Verlet in a periodic box, with a cutoff and capped forces."""
    n = len(x)
    pairs = 0
    potential = 0.0
    for _ in range(3):
        force = np.zeros((n, 2))
        potential = 0.0
        for i in range(n):
            for j in range(i + 1, n):
                dx = x[i, 0] - x[j, 0]
                dy = x[i, 1] - x[j, 1]
                if dx > box / 2:
                    dx -= box
                elif dx < -box / 2:
                    dx += box
                if dy > box / 2:
                    dy -= box
                elif dy < -box / 2:
                    dy += box
                r2 = dx * dx + dy * dy
                if r2 > cutoff * cutoff:
                    continue
                if r2 < 0.5:
                    r2 = 0.5
                pairs += 1
                inv6 = 1.0 / r2**3
                potential += 4 * inv6 * (inv6 - 1)
                f = 24 * inv6 * (2 * inv6 - 1) / r2
                force[i, 0] += f * dx
                force[i, 1] += f * dy
                force[j, 0] -= f * dx
                force[j, 1] -= f * dy
        v += 0.001 * force
        x += 0.001 * v
        x %= box
    return potential, pairs


@program(lambda r, n: (r.integers(2, 6, (n, n)),), 14)
def sandpile(grid):
    """Topple a pile of sand until it is stable."""
    rows, cols = grid.shape
    topplings = 0
    lost = 0
    unstable = [(i, j) for i in range(rows) for j in range(cols) if grid[i, j] >= 4]
    while unstable:
        i, j = unstable.pop()
        if grid[i, j] < 4:
            continue
        grid[i, j] -= 4
        topplings += 1
        if grid[i, j] >= 4:
            unstable.append((i, j))
        for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= a < rows and 0 <= b < cols:
                grid[a, b] += 1
                if grid[a, b] == 4:
                    unstable.append((a, b))
            else:
                lost += 1
    return topplings, lost
