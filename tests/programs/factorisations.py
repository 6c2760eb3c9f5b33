"""Factorisations and triangular systems, by element, by column, in place."""

import numpy as np

from .registry import kernel
from .solvers import positive


@kernel(lambda r, n: (positive(r, n),), 5, 60)
def cholesky(a):
    """Cholesky's factor over the lower triangle, element by element."""
    n = a.shape[0]
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@kernel(lambda r, n: (positive(r, n),), 5, 120)
def cholesky_by_columns(a):
    """The same into a new array, a column at a time."""
    n = len(a)
    low = np.zeros_like(a)
    for j in range(n):
        column = a[j:, j] - low[j:, :j] @ low[j, :j]
        low[j:, j] = column / np.sqrt(column[0])
    return low


@kernel(lambda r, n: (positive(r, n),), 5, 50)
def lu(a):
    """Both factors over the matrix, element by element."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]


@kernel(lambda r, n: (positive(r, n), r.normal(size=n)), 5, 40)
def lu_solve(a, b):
    """The factors, then the two triangular systems."""
    n = a.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        for j in range(i):
            w = a[i, j]
            for k in range(j):
                w -= a[i, k] * a[k, j]
            a[i, j] = w / a[j, j]
        for j in range(i, n):
            w = a[i, j]
            for k in range(i):
                w -= a[i, k] * a[k, j]
            a[i, j] = w
    for i in range(n):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, y


@kernel(lambda r, n: (r.normal(size=(n, n)), r.normal(size=n)), 5, 100)
def eliminate_with_pivots(a, b):
    """Gauss's elimination; rows change places so that the largest element is divided by."""
    a, b = a.copy(), b.copy()
    n = len(b)
    order = np.arange(n)
    for k in range(n - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[k], b[pivot] = b[pivot], b[k]
            order[k], order[pivot] = order[pivot], order[k]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= np.outer(factors, a[k, k:])
        b[k + 1 :] -= factors * b[k]
    x = np.empty(n)
    for k in reversed(range(n)):
        x[k] = (b[k] - np.sum(a[k, k + 1 :] * x[k + 1 :])) / a[k, k]
    return x, order


@kernel(lambda r, m, n: (r.normal(size=(m, n)),), (6, 4), (120, 60))
def gram_schmidt(a):
    """Orthonormal columns by the modified method; what is left of a is overwritten."""
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@kernel(lambda r, m, n: (r.normal(size=(m, n)),), (6, 4), (120, 60))
def householder_qr(a):
    """Reflections of what is left, gathered into Q."""
    m, n = a.shape
    r = a.copy()
    q = np.eye(m)
    for k in range(n):
        x = r[k:, k]
        v = x.copy()
        v[0] += np.copysign(np.linalg.norm(x), x[0])
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2.0 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2.0 * np.outer(q[:, k:] @ v, v)
    return q, np.triu(r[:n])


@kernel(lambda r, n: (0.5 * r.uniform(size=n),), 6, 300)
def durbin(r):
    """Levinson and Durbin's recursion for a Toeplitz system."""
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@kernel(lambda r, n: (np.tril(positive(r, n)), np.zeros(n), r.normal(size=n)), 6, 300)
def triangular_solve(low, x, b):
    """Forward substitution, a row at a time."""
    for i in range(x.shape[0]):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]


@kernel(lambda r, n: (positive(r, n),), 5, 50)
def ldl(a):
    """A = L D L', the factors in arrays of their own."""
    n = a.shape[0]
    low = np.eye(n)
    d = np.zeros(n)
    for j in range(n):
        d[j] = a[j, j] - np.sum(low[j, :j] ** 2 * d[:j])
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - np.sum(low[i, :j] * low[j, :j] * d[:j])) / d[j]
    return low, d


@kernel(lambda r, n: (r.normal(size=(n, n)),), 4, 40)
def matrix_exponential(a):
    """Scaled down until it is small, a series, squared up again."""
    norm = np.abs(a).sum(axis=0).max()
    halvings = 0
    while norm > 0.5:
        norm /= 2
        halvings += 1
    scaled = a / 2**halvings
    result = np.eye(len(a))
    term = np.eye(len(a))
    for k in range(1, 12):
        term = term @ scaled / k
        result += term
    for _ in range(halvings):
        result = result @ result
    return result


def knots(r, n):
    return np.cumsum(r.uniform(0.5, 1.5, size=n)), r.normal(size=n)


@kernel(knots, 7, 600)
def natural_spline(x, y):
    """Coefficients of a cubic spline, element by element."""
    n = len(x) - 1
    h = np.diff(x)
    alpha = np.zeros(n)
    for i in range(1, n):
        alpha[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    low, mu, z = np.ones(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(1, n):
        low[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / low[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / low[i]
    b, c, d = np.zeros(n), np.zeros(n + 1), np.zeros(n)
    for j in range(n - 1, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
        b[j] = (y[j + 1] - y[j]) / h[j] - h[j] * (c[j + 1] + 2 * c[j]) / 3
        d[j] = (c[j + 1] - c[j]) / (3 * h[j])
    return np.column_stack((y[:-1], b, c[:-1], d))
