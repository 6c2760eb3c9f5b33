"""Fluids: helpers that fill buffers, boundaries that are set side by side, loops that end when nothing moves."""

from dataclasses import dataclass

import numpy as np

from .registry import kernel


def sources(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )


def pressure(p, dx, dy, b, rounds):
    old = np.empty_like(p)
    for _ in range(rounds):
        old[:] = p
        p[1:-1, 1:-1] = ((old[1:-1, 2:] + old[1:-1, :-2]) * dy**2 + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def still(r, steps, n):
    return steps, 5, 0.1 * r.normal(size=(n, n)), np.zeros((n, n)), np.zeros((n, n)), 0.001


@kernel(still, (2, 7), (20, 40))
def cavity_flow(steps, rounds, u, v, p, dt):
    """A box whose lid moves: velocities and pressure, all in place."""
    ny, nx = u.shape
    dx, dy, rho, nu = 2 / (nx - 1), 2 / (ny - 1), 1.0, 0.1
    b = np.zeros((ny, nx))
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        sources(b, rho, dt, u, v, dx, dy)
        pressure(p, dx, dy, b, rounds)
        for w, wn, gradient in ((u, un, (p[1:-1, 2:] - p[1:-1, :-2]) / dx), (v, vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / dy)):
            w[1:-1, 1:-1] = (
                wn[1:-1, 1:-1]
                - un[1:-1, 1:-1] * dt / dx * (wn[1:-1, 1:-1] - wn[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dy * (wn[1:-1, 1:-1] - wn[:-2, 1:-1])
                - dt / (2 * rho) * gradient
                + nu * dt / dx**2 * (wn[1:-1, 2:] - 2 * wn[1:-1, 1:-1] + wn[1:-1, :-2])
                + nu * dt / dy**2 * (wn[2:, 1:-1] - 2 * wn[1:-1, 1:-1] + wn[:-2, 1:-1])
            )
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0


@kernel(lambda r, n: (np.zeros((n, n)), 1e-2 * (1 + r.uniform())), 6, 24)
def channel_flow(u, tolerance):
    """A driven flow between plates, periodic along them, until it changes no more."""
    steps = 0
    change = 1.0
    while change > tolerance:
        un = u.copy()
        u[1:-1, :] = un[1:-1, :] + 0.2 * (un[2:, :] - 2 * un[1:-1, :] + un[:-2, :])
        u[1:-1, 1:-1] += 0.1 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
        u[1:-1, 0] += 0.1 * (un[1:-1, 1] - 2 * un[1:-1, 0] + un[1:-1, -1])
        u[1:-1, -1] += 0.1 * (un[1:-1, 0] - 2 * un[1:-1, -1] + un[1:-1, -2])
        u[1:-1, :] += 0.05
        u[0, :] = u[-1, :] = 0
        change = (np.sum(u) - np.sum(un)) / np.sum(u)
        steps += 1
    return steps


@dataclass
class Water:
    """Height and momentum."""

    h: np.ndarray
    hu: np.ndarray


def flux(state):
    u = state.hu / state.h
    return state.hu, state.hu * u + 0.5 * 9.81 * state.h**2


@kernel(lambda r, steps, n: (1.0 + 0.1 * r.uniform(size=n), np.zeros(n), steps), (3, 8), (150, 400))
def shallow_water(h, hu, steps):
    """A dam that breaks, by Lax and Friedrichs, the state in a dataclass."""
    state = Water(h, hu)
    ratio = 0.1
    for _ in range(steps):
        mass, momentum = flux(state)
        new = Water(state.h.copy(), state.hu.copy())
        new.h[1:-1] = 0.5 * (state.h[:-2] + state.h[2:]) - 0.5 * ratio * (mass[2:] - mass[:-2])
        new.hu[1:-1] = 0.5 * (state.hu[:-2] + state.hu[2:]) - 0.5 * ratio * (momentum[2:] - momentum[:-2])
        new.h[0], new.h[-1] = new.h[1], new.h[-2]
        new.hu[0] = -new.hu[1]
        new.hu[-1] = -new.hu[-2]
        state = new
    return state.h, state.hu


@kernel(
    lambda r, steps, n: (r.uniform(0.5, 1.5, size=(9, n, n)), r.uniform(size=(n, n)) < 0.1, steps), (2, 6), (20, 40)
)
def lattice_boltzmann(f, wall, steps):
    """Nine directions that stream, bounce off walls, and relax."""
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]
    for _ in range(steps):
        for i in range(9):
            f[i] = np.roll(np.roll(f[i], cx[i], axis=1), cy[i], axis=0)
        bounced = f[:, wall][opposite]
        rho = f.sum(axis=0)
        ux = (f * cx[:, None, None]).sum(axis=0) / rho
        uy = (f * cy[:, None, None]).sum(axis=0) / rho
        equal = np.zeros(f.shape)
        for i, w in enumerate(weights):
            along = cx[i] * ux + cy[i] * uy
            equal[i] = rho * w * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
        f += -(1.0 / 0.6) * (f - equal)
        f[:, wall] = bounced
    return rho, ux, uy


@kernel(lambda r, steps, n: (r.normal(size=n), 0.1, steps), (2, 10), (100, 300))
def burgers(u, viscosity, steps):
    """Burgers' equation with ends that wrap round."""
    dx = 2 * np.pi / (len(u) - 1)
    dt = 0.1 * dx * viscosity
    for _ in range(steps):
        un = u.copy()
        for i in (0, -1):
            u[i] = un[i] - un[i] * dt / dx * (un[i] - un[-2]) + viscosity * dt / dx**2 * (un[1] - 2 * un[i] + un[-2])
        u[1:-1] = (
            un[1:-1]
            - un[1:-1] * dt / dx * (un[1:-1] - un[:-2])
            + viscosity * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
    return u.max()
