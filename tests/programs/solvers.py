"""Systems of equations by iteration: loops that end when the residual is small."""

import numpy as np

from .registry import kernel


def positive(r, n):
    a = r.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


def system(r, n):
    return positive(r, n), r.normal(size=n)


@kernel(lambda r, n: (*system(r, n), np.zeros(n)), 6, 200)
def conjugate_gradient(a, b, x, tolerance=1e-10):
    """Conjugate gradients, into x."""
    residual = b - a @ x
    direction = residual.copy()
    old = residual @ residual
    for _ in range(2 * len(b)):
        image = a @ direction
        step = old / (direction @ image)
        x += step * direction
        residual -= step * image
        new = residual @ residual
        if np.sqrt(new) < tolerance:
            break
        direction *= new / old
        direction += residual
        old = new
    return x


@kernel(lambda r, n, sweeps: (*system(r, n), sweeps), (5, 3), (40, 10))
def gauss_seidel(a, b, sweeps):
    """Gauss and Seidel's sweeps, element by element."""
    n = len(b)
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            total = b[i]
            for j in range(n):
                if j != i:
                    total -= a[i, j] * x[j]
            x[i] = total / a[i, i]
    return x


@kernel(lambda r, sweeps, n: (r.normal(size=(n, n)), r.normal(size=(n, n)), 1.5, sweeps), (3, 6), (40, 50))
def red_black_sor(u, f, omega, sweeps):
    """Over-relaxation of the red points, then of the black ones; the residual of each sweep."""
    history = []
    for _ in range(sweeps):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            points = u[i:-1:2, j:-1:2]
            n, m = points.shape
            around = (
                u[i - 1 : i - 1 + 2 * n : 2, j : j + 2 * m : 2]
                + u[i + 1 : i + 1 + 2 * n : 2, j : j + 2 * m : 2]
                + u[i : i + 2 * n : 2, j - 1 : j - 1 + 2 * m : 2]
                + u[i : i + 2 * n : 2, j + 1 : j + 1 + 2 * m : 2]
            )
            points += omega * (0.25 * (around - f[i:-1:2, j:-1:2]) - points)
        history.append(np.abs(u).max())
    return u, np.array(history)


def smooth(u, f, h, sweeps):
    for _ in range(sweeps):
        u[1:-1] = 0.5 * (u[:-2] + u[2:] + h * h * f[1:-1])


def cycle(u, f, h):
    smooth(u, f, h, 2)
    if len(u) <= 5:
        smooth(u, f, h, 10)
        return
    residual = np.zeros_like(u)
    residual[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h)
    coarse = residual[::2].copy()
    coarse[1:-1] = 0.25 * (residual[1:-2:2] + 2 * residual[2:-1:2] + residual[3::2])
    correction = np.zeros_like(coarse)
    cycle(correction, coarse, 2 * h)
    u[::2] += correction
    u[1::2] += 0.5 * (correction[:-1] + correction[1:])
    smooth(u, f, h, 2)


@kernel(lambda r, levels, cycles: (r.normal(size=2**levels + 1), cycles), (4, 2), (9, 10))
def multigrid(f, cycles):
    """V-cycles for Poisson's equation on a line, by recursion."""
    u = np.zeros_like(f)
    for _ in range(cycles):
        cycle(u, f, 1.0 / (len(f) - 1))
    return u


def tridiagonal(r, n):
    return r.normal(size=n - 1), 4 + r.uniform(size=n), r.normal(size=n - 1), r.normal(size=n)


@kernel(tridiagonal, 6, 2000)
def thomas(lower, diagonal, upper, d):
    """A tridiagonal system; the diagonal and the right-hand side are overwritten."""
    n = len(d)
    for i in range(1, n):
        w = lower[i - 1] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        d[i] -= w * d[i - 1]
    d[-1] /= diagonal[-1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - upper[i] * d[i + 1]) / diagonal[i]
    return d


@kernel(lambda r, steps, n: (steps, r.normal(size=(n, n))), (2, 6), (5, 60))
def adi(steps, u):
    """Diffusion by alternating directions: sweeps along columns, then along rows."""
    n = u.shape[0]
    v, p, q = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    a, b, d, e = -0.3, 1.6, -0.2, 1.4
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (-d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - e * u[j, 2:] - a * q[1:-1, j - 1]) / (
                a * p[1:-1, j - 1] + b
            )
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = 0.5 * (v[j, 1:-1] + u[1:-1, j + 1])


@kernel(lambda r, n: (positive(r, n), r.normal(size=n)), 5, 100)
def power_iteration(a, x, tolerance=1e-8):
    """The largest eigenvalue, until it stands still."""
    value = 0.0
    for _ in range(500):
        y = a @ x
        norm = np.linalg.norm(y)
        x = y / norm
        new = x @ a @ x
        if abs(new - value) < tolerance * abs(new):
            break
        value = new
    return value, x


@kernel(lambda r, n, m: (*system(r, n), m), (6, 4), (150, 40))
def gmres(a, b, m):
    """Arnoldi's basis, and rotations that keep the least squares triangular."""
    n = len(b)
    basis = np.zeros((m + 1, n))
    h = np.zeros((m + 1, m))
    cosines, sines = np.zeros(m), np.zeros(m)
    g = np.zeros(m + 1)
    g[0] = np.sqrt(b @ b)
    basis[0] = b / g[0]
    for k in range(m):
        w = a @ basis[k]
        for i in range(k + 1):
            h[i, k] = w @ basis[i]
            w -= h[i, k] * basis[i]
        h[k + 1, k] = np.sqrt(w @ w)
        basis[k + 1] = w / h[k + 1, k]
        for i in range(k):
            top = cosines[i] * h[i, k] + sines[i] * h[i + 1, k]
            h[i + 1, k] = -sines[i] * h[i, k] + cosines[i] * h[i + 1, k]
            h[i, k] = top
        r = np.hypot(h[k, k], h[k + 1, k])
        cosines[k], sines[k] = h[k, k] / r, h[k + 1, k] / r
        h[k, k], h[k + 1, k] = r, 0.0
        g[k + 1] = -sines[k] * g[k]
        g[k] *= cosines[k]
    y = np.zeros(m)
    for i in range(m - 1, -1, -1):
        y[i] = (g[i] - h[i, i + 1 :] @ y[i + 1 :]) / h[i, i]
    return y @ basis[:m]


@kernel(lambda r, n: (*system(r, n),), 5, 150)
def bicgstab(a, b):
    """Stabilised biconjugate gradients, until the residual is small."""
    x = np.zeros(b.shape)
    r = b.copy()
    shadow = r.copy()
    rho = alpha = omega = 1.0
    v = p = np.zeros_like(b)
    count = 0
    while np.linalg.norm(r) > 1e-9 and count < 200:
        last, rho = rho, shadow @ r
        beta = rho / last * alpha / omega
        p = r + beta * (p - omega * v)
        v = a @ p
        alpha = rho / (shadow @ v)
        s = r - alpha * v
        t = a @ s
        omega = (t @ s) / (t @ t)
        x += alpha * p + omega * s
        r = s - omega * t
        count += 1
    return x, count


def bratu(u, h):
    f = np.zeros_like(u)
    f[1:-1] = (u[:-2] - 2 * u[1:-1] + u[2:]) / h**2 + np.exp(u[1:-1])
    f[0], f[-1] = u[0], u[-1]
    return f


@kernel(lambda r, n: (0.1 * r.uniform(size=n),), 6, 30)
def newton_differences(u):
    """Newton's method with a matrix of differences, a column at a time; the guess is overwritten."""
    n = len(u)
    h = 1.0 / (n - 1)
    jacobian = np.empty((n, n))
    for _ in range(4):
        f = bratu(u, h)
        for j in range(n):
            saved = u[j]
            u[j] = saved + 1e-6
            jacobian[:, j] = (bratu(u, h) - f) / 1e-6
            u[j] = saved
        u -= np.linalg.solve(jacobian, f)
    return u


@kernel(lambda r, n: (positive(r, n),), 4, 10)
def jacobi_eigenvalues(a):
    """Rotations that put out one element after another, where there is anything to put out."""
    a = a.copy()
    n = a.shape[0]
    for _ in range(5):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-12:
                    continue
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = np.sign(theta) / (abs(theta) + np.sqrt(theta**2 + 1.0))
                c = 1.0 / np.sqrt(t**2 + 1.0)
                s = t * c
                rows = a[[p, q], :].copy()
                a[p, :] = c * rows[0] - s * rows[1]
                a[q, :] = s * rows[0] + c * rows[1]
                columns = a[:, [p, q]].copy()
                a[:, p] = c * columns[:, 0] - s * columns[:, 1]
                a[:, q] = s * columns[:, 0] + c * columns[:, 1]
    return np.sort(np.diag(a))
