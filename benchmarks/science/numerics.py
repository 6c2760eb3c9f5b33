"""Numerical methods as a textbook writes them."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: (r.normal(size=(n, n)), r.normal(size=n)), 16)
def lu_solve(a, b):
    """Solve linear equations by elimination with partial pivots; tell the sign of the permutation."""
    a = a.copy()
    b = b.copy()
    n = len(b)
    sign = 1
    for k in range(n):
        pivot = k
        largest = abs(a[k, k])
        for i in range(k + 1, n):
            if abs(a[i, k]) > largest:
                largest = abs(a[i, k])
                pivot = i
        if largest < 1e-14:
            return None, 0, 0.0
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[k], b[pivot] = b[pivot], b[k]
            sign = -sign
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
            b[i] -= f * b[k]
    x = np.zeros(n)
    det = float(sign)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
        det *= a[i, i]
    return x, sign, det


def definite(r, n):
    m = r.normal(size=(n, n))
    return (m @ m.T + n * np.eye(n),)


@program(definite, 20)
def cholesky(a):
    """Factor a positive matrix, and raise an error where it is none."""
    n = a.shape[0]
    lower = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= lower[i, k] * lower[j, k]
            if i == j:
                if s <= 0:
                    raise ValueError("not positive definite")
                lower[i, i] = math.sqrt(s)
            else:
                lower[i, j] = s / lower[j, j]
    return lower


def symmetric(r, n):
    m = r.normal(size=(n, n))
    return m + m.T, 1e-10


@program(symmetric, 8)
def jacobi_eigenvalues(a, tolerance):
    """Rotate a symmetric matrix until it is diagonal, always at its largest element."""
    a = a.copy()
    n = len(a)
    v = np.eye(n)
    rotations = 0
    while rotations < 500:
        big, p, q = 0.0, 0, 1
        for i in range(n):
            for j in range(i + 1, n):
                if abs(a[i, j]) > big:
                    big, p, q = abs(a[i, j]), i, j
        if big < tolerance:
            break
        theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
        t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1))
        c = 1 / math.sqrt(t * t + 1)
        s = t * c
        for k in range(n):
            akp, akq = a[k, p], a[k, q]
            a[k, p] = c * akp - s * akq
            a[k, q] = s * akp + c * akq
        for k in range(n):
            apk, aqk = a[p, k], a[q, k]
            a[p, k] = c * apk - s * aqk
            a[q, k] = s * apk + c * aqk
            vkp, vkq = v[k, p], v[k, q]
            v[k, p] = c * vkp - s * vkq
            v[k, q] = s * vkp + c * vkq
        rotations += 1
    order = np.argsort(np.diag(a))
    return np.diag(a)[order], v[:, order], rotations


@program(lambda r, n: (definite(r, n)[0], r.normal(size=n), 1e-10), 120)
def conjugate_gradients(a, b, tolerance):
    """Solve a positive system by conjugate gradients."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = np.dot(r, r)
    history = [float(np.sqrt(rs))]
    for k in range(10 * len(b)):
        ap = a @ p
        alpha = rs / np.dot(p, ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = np.dot(r, r)
        history.append(float(np.sqrt(new)))
        if np.sqrt(new) < tolerance:
            break
        p = r + (new / rs) * p
        rs = new
    return x, k + 1, history


def rosenbrock(p):
    return (1.0 - p[0]) ** 2 + 100.0 * (p[1] - p[0] ** 2) ** 2


@program(lambda r, n: (r.uniform(-2, 2, 2), n, 1e-8), 150)
def nelder_mead(start, most, tolerance):
    """Minimise Rosenbrock's function with a simplex that flips, grows and shrinks."""
    simplex = [start.copy() for _ in range(3)]
    simplex[1][0] += 0.5
    simplex[2][1] += 0.5
    values = [rosenbrock(p) for p in simplex]
    evaluations = 3
    for iteration in range(most):
        order = sorted(range(3), key=lambda k: values[k])
        simplex = [simplex[k] for k in order]
        values = [values[k] for k in order]
        if abs(values[2] - values[0]) < tolerance:
            break
        centre = 0.5 * (simplex[0] + simplex[1])
        reflected = centre + (centre - simplex[2])
        f = rosenbrock(reflected)
        evaluations += 1
        if f < values[0]:
            expanded = centre + 2.0 * (centre - simplex[2])
            fe = rosenbrock(expanded)
            evaluations += 1
            if fe < f:
                simplex[2], values[2] = expanded, fe
            else:
                simplex[2], values[2] = reflected, f
        elif f < values[1]:
            simplex[2], values[2] = reflected, f
        else:
            contracted = centre + 0.5 * (simplex[2] - centre)
            fc = rosenbrock(contracted)
            evaluations += 1
            if fc < values[2]:
                simplex[2], values[2] = contracted, fc
            else:
                for k in (1, 2):
                    simplex[k] = simplex[0] + 0.5 * (simplex[k] - simplex[0])
                    values[k] = rosenbrock(simplex[k])
                evaluations += 2
    return simplex[0], values[0], iteration, evaluations


@program(lambda r, n: (0.0, 3.0, 10.0**-n, float(r.uniform(1, 4))), 8)
def adaptive_simpson(a, b, tolerance, w):
    """Integrate a function that oscillates, halving intervals on a stack."""

    def f(x):
        return math.exp(-x) * math.sin(w * x * x)

    def simpson(fa, fm, fb, h):
        return h / 6.0 * (fa + 4.0 * fm + fb)

    fa, fm, fb = f(a), f(0.5 * (a + b)), f(b)
    stack = [(a, b, fa, fm, fb, simpson(fa, fm, fb, b - a), tolerance)]
    total = 0.0
    intervals = 0
    while stack:
        left, right, fl, fm, fr, whole, tol = stack.pop()
        middle = 0.5 * (left + right)
        f1, f2 = f(0.5 * (left + middle)), f(0.5 * (middle + right))
        s1 = simpson(fl, f1, fm, middle - left)
        s2 = simpson(fm, f2, fr, right - middle)
        if abs(s1 + s2 - whole) <= 15 * tol or right - left < 1e-9:
            total += s1 + s2 + (s1 + s2 - whole) / 15
            intervals += 1
        else:
            stack.append((left, middle, fl, f1, fm, s1, tol / 2))
            stack.append((middle, right, fm, f2, fr, s2, tol / 2))
    return total, intervals


@program(lambda r, n: (r.uniform(-3, 3, n), 1e-12, 50), 300)
def secant_roots(constants, tolerance, most):
    """Find a root of x³ + x = c for each c by the secant method; mark those not found."""
    roots = np.full(len(constants), np.nan)
    failures = 0
    longest = 0
    for i in range(len(constants)):
        x0, x1 = 0.0, 1.0
        f0 = -constants[i]
        f1 = 2.0 - constants[i]
        found = False
        for k in range(most):
            if f1 == f0:
                break
            x2 = x1 - f1 * (x1 - x0) / (f1 - f0)
            x0, f0 = x1, f1
            x1 = x2
            f1 = x1**3 + x1 - constants[i]
            if abs(f1) < tolerance:
                found = True
                longest = max(longest, k + 1)
                break
        if found:
            roots[i] = x1
        else:
            failures += 1
    return roots, failures, longest
