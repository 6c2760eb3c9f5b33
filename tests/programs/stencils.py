"""Neighbours on a grid, step after step, most of them into the arrays that they were given."""

import numpy as np

from .registry import kernel


def line_and_copy(r, steps, n):
    a = r.normal(size=n)
    return steps, a, a.copy()


def plane_and_copy(r, steps, n):
    a = r.normal(size=(n, n))
    return steps, a, a.copy()


@kernel(line_and_copy, (3, 12), (400, 1000))
def jacobi_1d(steps, a, b):
    """Means of three neighbours, from one line into the other and back."""
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0


@kernel(plane_and_copy, (3, 7), (60, 80))
def jacobi_2d(steps, a, b):
    """Means of five neighbours in the plane."""
    for _ in range(1, steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


def cube_and_copy(r, steps, n):
    a = r.normal(size=(n, n, n))
    return steps, a, a.copy()


@kernel(cube_and_copy, (2, 5), (20, 20))
def heat_3d(steps, a, b):
    """The heat equation in a cube, two half steps a step."""
    for _ in range(steps):
        for source, target in ((a, b), (b, a)):
            middle = source[1:-1, 1:-1, 1:-1]
            target[1:-1, 1:-1, 1:-1] = (
                0.125 * (source[2:, 1:-1, 1:-1] - 2.0 * middle + source[:-2, 1:-1, 1:-1])
                + 0.125 * (source[1:-1, 2:, 1:-1] - 2.0 * middle + source[1:-1, :-2, 1:-1])
                + 0.125 * (source[1:-1, 1:-1, 2:] - 2.0 * middle + source[1:-1, 1:-1, :-2])
                + middle
            )


@kernel(lambda r, steps, n: (steps, r.normal(size=(n, n))), (2, 6), (4, 40))
def seidel_2d(steps, a):
    """Means of nine neighbours in place, so that each sees those before it."""
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:]
            a[i, 1:-1] += a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@kernel(
    lambda r, steps, n: (
        r.normal(size=(n, n + 1)),
        r.normal(size=(n + 1, n)),
        r.normal(size=(n, n)),
        r.normal(size=steps),
    ),
    (3, 6),
    (60, 60),
)
def fdtd_2d(ex, ey, hz, pulse):
    """Maxwell's equations in the plane, a pulse at one side."""
    for t in range(len(pulse)):
        ey[0, :] = pulse[t]
        ey[1:-1, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:-1] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz -= 0.7 * (ex[:, 1:] - ex[:, :-1] + ey[1:, :] - ey[:-1, :])


@kernel(
    lambda r, n, k: (r.normal(size=(n + 4, n + 4, k)), np.zeros((n, n, k)), r.uniform(size=(n, n, k))), (5, 2), (60, 10)
)
def horizontal_diffusion(field, result, coefficient):
    """A weather model's diffusion: a Laplacian, fluxes that are cut where they go uphill."""
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    across = lap[1:, 1:-1] - lap[:-1, 1:-1]
    across = np.where(across * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, across)
    along = lap[1:-1, 1:] - lap[1:-1, :-1]
    along = np.where(along * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, along)
    result[:, :, :] = field[2:-2, 2:-2] - coefficient * (across[1:] - across[:-1] + along[:, 1:] - along[:, :-1])


@kernel(lambda r, n, k: (r.normal(size=(n, n, k)), r.normal(size=(n, n, k + 1)), 0.1), (3, 5), (30, 40))
def vertical_advection(u, w, dt):
    """An implicit step along each column: a sweep down, a sweep up."""
    depth = u.shape[2]
    c = np.empty_like(u)
    d = np.empty_like(u)
    for k in range(depth):
        below = -0.25 * dt * w[:, :, k] if k > 0 else np.zeros(u.shape[:2])
        above = 0.25 * dt * w[:, :, k + 1] if k < depth - 1 else np.zeros(u.shape[:2])
        right = u[:, :, k].copy()
        if k > 0:
            factor = 1.0 / (1.0 - below * c[:, :, k - 1])
            c[:, :, k] = above * factor
            d[:, :, k] = (right - below * d[:, :, k - 1]) * factor
        else:
            c[:, :, 0] = above
            d[:, :, 0] = right
    out = np.zeros_like(u)
    out[:, :, -1] = d[:, :, -1]
    for k in range(depth - 2, -1, -1):
        out[:, :, k] = d[:, :, k] - c[:, :, k] * out[:, :, k + 1]
    return out


@kernel(lambda r, steps, n: (r.normal(size=(n, n)), steps), (4, 6), (80, 60))
def wave_2d(u0, steps):
    """A membrane: three buffers that change places."""
    before = u0.copy()
    now = u0.copy()
    after = np.zeros_like(u0)
    for _ in range(steps):
        after[1:-1, 1:-1] = (
            2 * now[1:-1, 1:-1]
            - before[1:-1, 1:-1]
            + 0.2 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1])
        )
        before, now, after = now, after, before
    return now


@kernel(lambda r, steps, n: (r.uniform(size=(n, n)), r.uniform(size=(n, n)), steps, 0.035, 0.06), (3, 6), (50, 64))
def gray_scott(u, v, steps, feed, kill):
    """Two substances that react and diffuse; views of the middle are taken once and written again and again."""
    uu, vv = u[1:-1, 1:-1], v[1:-1, 1:-1]
    for _ in range(steps):
        lu = u[:-2, 1:-1] + u[1:-1, :-2] - 4 * uu + u[1:-1, 2:] + u[2:, 1:-1]
        lv = v[:-2, 1:-1] + v[1:-1, :-2] - 4 * vv + v[1:-1, 2:] + v[2:, 1:-1]
        reaction = uu * vv * vv
        uu += 0.16 * lu - reaction + feed * (1 - uu)
        vv += 0.08 * lv + reaction - (feed + kill) * vv
    return u, v


@kernel(lambda r, steps, n: (r.uniform(size=n), 0.4, steps), (4, 9), (300, 500))
def upwind(q, courant, steps):
    """Advection on a ring with one buffer for the fluxes."""
    flux = np.empty(q.size + 1)
    for _ in range(steps):
        np.multiply(q, courant, out=flux[1:])
        flux[0] = flux[-1]
        np.subtract(flux[:-1], flux[1:], out=flux[:-1])
        q += flux[:-1]
    return q


@kernel(lambda r, steps, n: (r.normal(size=(n, n)), steps), (2, 6), (20, 50))
def perona_malik(image, steps):
    """Diffusion that stops at edges, with differences to each of four sides."""
    out = image.copy()
    north, south, east, west = (np.zeros_like(out) for _ in range(4))
    for _ in range(steps):
        north[1:] = out[:-1] - out[1:]
        south[:-1] = out[1:] - out[:-1]
        east[:, :-1] = out[:, 1:] - out[:, :-1]
        west[:, 1:] = out[:, :-1] - out[:, 1:]
        for side in (north, south, east, west):
            out += 0.1 * np.exp(-(side**2)) * side
    return out
