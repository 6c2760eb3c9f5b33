"""Bodies and orbits: steps in time, written into trajectories."""

from dataclasses import dataclass

import numpy as np

from .registry import kernel


def accelerations(mass, position, softening):
    gap = position[None, :, :] - position[:, None, :]
    squared = (gap**2).sum(axis=2) + softening**2
    inverse = squared**-1.5
    np.fill_diagonal(inverse, 0.0)
    return (gap * inverse[:, :, None] * mass[None, :, None]).sum(axis=1)


@kernel(
    lambda r, steps, n: (r.uniform(size=n), r.normal(size=(n, 3)), r.normal(size=(n, 3)), 0.01, steps), (3, 4), (40, 30)
)
def n_body(mass, position, velocity, dt, steps):
    """Stars that attract each other, by kick, drift, kick; energies along the way."""
    velocity -= np.mean(mass[:, None] * velocity, axis=0) / mass.mean()
    acceleration = accelerations(mass, position, 0.1)
    kinetic = np.zeros(steps + 1)
    kinetic[0] = 0.5 * np.sum(mass[:, None] * velocity**2)
    for i in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = accelerations(mass, position, 0.1)
        velocity += acceleration * dt / 2.0
        kinetic[i + 1] = 0.5 * np.sum(mass[:, None] * velocity**2)
    return kinetic


@kernel(lambda r, n: (r.normal(size=(n, 3)), np.zeros((n, 3))), 4, 25)
def forces_by_pairs(position, force):
    """Lennard and Jones's forces, pair by pair, with a radius beyond which there are none."""
    n = len(position)
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            gap = position[i] - position[j]
            squared = gap @ gap
            if squared < 6.25:
                inverse = 1.0 / (squared * squared * squared)
                energy += 4.0 * inverse * (inverse - 1.0)
                push = 24.0 * inverse * (2.0 * inverse - 1.0) / squared * gap
                force[i] += push
                force[j] -= push
    return energy


def lorenz(state):
    out = np.empty(3)
    out[0] = 10.0 * (state[1] - state[0])
    out[1] = state[0] * (28.0 - state[2]) - state[1]
    out[2] = state[0] * state[1] - 8.0 / 3.0 * state[2]
    return out


@kernel(lambda r, steps: (r.normal(size=3), 0.01, steps), 4, 400)
def lorenz_by_rk4(start, dt, steps):
    """The butterfly, by Runge and Kutta's fourth order."""
    track = np.empty((steps + 1, 3))
    track[0] = start
    for i in range(steps):
        y = track[i]
        k1 = lorenz(y)
        k2 = lorenz(y + dt / 2 * k1)
        k3 = lorenz(y + dt / 2 * k2)
        k4 = lorenz(y + dt * k3)
        track[i + 1] = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return track


@dataclass
class Planet:
    """Where it is and how fast."""

    place: np.ndarray
    speed: np.ndarray

    def pull(self):
        return -self.place / np.sqrt(self.place @ self.place) ** 3

    def kick(self, dt):
        self.speed += dt * self.pull()

    def drift(self, dt):
        self.place += dt * self.speed


@kernel(lambda r, steps: (np.array([1.0, 0.0]), np.array([0.0, r.uniform(0.8, 1.1)]), 0.01, steps), 4, 600)
def kepler_by_leapfrog(place, speed, dt, steps):
    """An orbit by an object's methods, which move it; the energy stays where it is."""
    planet = Planet(place.copy(), speed.copy())
    energy = np.zeros(steps)
    for i in range(steps):
        planet.kick(dt / 2)
        planet.drift(dt)
        planet.kick(dt / 2)
        energy[i] = 0.5 * planet.speed @ planet.speed - 1 / np.linalg.norm(planet.place)
    return planet.place, planet.speed, energy


def pendulum(y):
    return np.array([y[1], -np.sin(y[0]) - 0.1 * y[1]])


@kernel(lambda r, limit: (np.array([r.uniform(1, 2), 0.0]), 2.0 * limit), 1, 5)
def pendulum_with_step_control(y, until):
    """Heun's method; a step whose error is too large is halved and done again."""
    t, dt = 0.0, 0.1
    accepted = 0
    while t < until:
        dt = min(dt, until - t)
        k1 = pendulum(y)
        k2 = pendulum(y + dt * k1)
        error = np.abs(dt / 2 * (k2 - k1)).max()
        if error > 1e-3:
            dt /= 2
            continue
        y = y + dt / 2 * (k1 + k2)
        t += dt
        accepted += 1
        if error < 1e-4:
            dt *= 1.5
    return y, accepted


@kernel(lambda r, steps, n: (r.uniform(size=(n, 2)), 0.1 * r.normal(size=(n, 2)), steps), (3, 5), (30, 40))
def flock(place, speed, steps):
    """Birds that keep together and apart, in a box that is closed on itself."""
    for _ in range(steps):
        gap = place[:, None] - place[None, :]
        gap -= np.round(gap)
        distance = np.sqrt((gap**2).sum(-1))
        near = (distance < 0.2) & (distance > 0)
        count = np.maximum(near.sum(axis=1), 1)
        mean = (near @ speed) / count[:, None]
        apart = np.where(near[:, :, None], gap / (distance[:, :, None] + 1e-9), 0.0).sum(axis=1)
        speed += 0.05 * (mean - speed) + 0.01 * apart
        size = np.linalg.norm(speed, axis=1)
        fast = size > 0.1
        speed[fast] *= (0.1 / size[fast])[:, None]
        place += speed
        place %= 1.0


@kernel(lambda r, steps, n: (0.3 * r.normal(size=n), steps), (3, 6), (200, 60))
def string_of_masses(q, steps):
    """Fermi, Pasta, Ulam and Tsingou: springs that are not quite linear, by Verlet's steps."""
    p = np.zeros_like(q)
    force = np.zeros_like(q)
    snapshots = np.zeros((steps, q.size))
    for k in range(steps):
        stretch = np.diff(q)
        tension = stretch + 0.25 * stretch**2
        force[:] = 0
        force[:-1] += tension
        force[1:] -= tension
        p += 0.05 * force
        p[[0, -1]] = 0
        q += 0.05 * p
        snapshots[k, :] = q
    return snapshots
