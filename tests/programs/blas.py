"""Products of matrices and vectors, with the outcome in one of the arguments."""

import numpy as np

from .registry import kernel


def square(r, n):
    return r.normal(size=(n, n))


@kernel(lambda r, n: (1.5, 1.2, square(r, n), square(r, n), square(r, n)), 5, 100)
def gemm(alpha, beta, c, a, b):
    """C = alpha A B + beta C."""
    c[:] = alpha * a @ b + beta * c


@kernel(lambda r, n, m: (1.5, 1.2, square(r, n), r.normal(size=(n, m))), (5, 3), (80, 60))
def syrk(alpha, beta, c, a):
    """C = alpha A A' + beta C, of the lower triangle, a row at a time."""
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


@kernel(lambda r, n, m: (1.5, 1.2, square(r, n), r.normal(size=(n, m)), r.normal(size=(n, m))), (5, 3), (60, 40))
def syr2k(alpha, beta, c, a, b):
    """C = alpha (A B' + B A') + beta C, of the lower triangle."""
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * alpha * b[i, k] + b[: i + 1, k] * alpha * a[i, k]


@kernel(lambda r, m, n: (1.5, 1.2, r.normal(size=(m, n)), square(r, m), r.normal(size=(m, n))), (4, 5), (40, 50))
def symm(alpha, beta, c, a, b):
    """C = alpha A B + beta C, of a symmetric A whose lower triangle is given."""
    below = np.empty((c.shape[1],), dtype=c.dtype)
    c *= beta
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            below[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * below


@kernel(lambda r, m, n: (1.5, square(r, m), r.normal(size=(m, n))), (5, 4), (50, 60))
def trmm(alpha, a, b):
    """B = alpha A' B with a unit lower triangle."""
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha


def vectors(r, n, count):
    return tuple(r.normal(size=n) for _ in range(count))


@kernel(lambda r, n: (1.5, 1.2, square(r, n), *vectors(r, n, 8)), 6, 400)
def gemver(alpha, beta, a, u1, v1, u2, v2, w, x, y, z):
    """Two updates of rank one, and two products with what came of them."""
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ a + z
    w += alpha * a @ x


@kernel(lambda r, n: (1.5, 1.2, square(r, n), square(r, n), *vectors(r, n, 1)), 6, 400)
def gesummv(alpha, beta, a, b, x):
    """A sum of two products."""
    return alpha * a @ x + beta * b @ x


@kernel(lambda r, n: (square(r, n), *vectors(r, n, 1)), 6, 400)
def atax(a, x):
    """A' A x."""
    return (a @ x) @ a


@kernel(lambda r, n: (square(r, n), *vectors(r, n, 2)), 6, 400)
def bicg(a, p, r):
    """The two products of biconjugate gradients."""
    return r @ a, a @ p


@kernel(lambda r, n: (*vectors(r, n, 4), square(r, n)), 6, 400)
def mvt(x1, x2, y1, y2, a):
    """A product with a matrix and with its transpose, added to what is there."""
    x1 += a @ y1
    x2 += y2 @ a


@kernel(lambda r, n: (1.5, 1.2, *(square(r, n) for _ in range(4))), 5, 90)
def two_products(alpha, beta, a, b, c, d):
    """D = alpha A B C + beta D."""
    d[:] = alpha * a @ b @ c + beta * d


@kernel(lambda r, n: tuple(square(r, n) for _ in range(4)), 5, 90)
def three_products(a, b, c, d):
    """(A B) (C D)."""
    e = np.matmul(a, b)
    f = np.matmul(c, d)
    return e @ f


@kernel(lambda r, n, p: (r.normal(size=(n, n, p)), square(r, p)), (4, 5), (30, 40))
def doitgen(a, c4):
    """Every row times a matrix, put back where it was."""
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q, :] = a[r, q, :] @ c4


@kernel(lambda r, n, m: (r.normal(size=(n, m)),), (8, 5), (120, 80))
def covariance(data):
    """Covariances of columns; the data lose their means."""
    n, m = data.shape
    mean = np.mean(data, axis=0)
    data -= mean
    out = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        out[i:, i] = data[:, i] @ data[:, i:] / (n - 1.0)
        out[i, i:] = out[i:, i]
    return out


@kernel(lambda r, n, m: (r.normal(size=(n, m)),), (8, 5), (120, 80))
def correlation(data):
    """Correlations of columns, with deviations of almost nothing taken for one."""
    n, m = data.shape
    mean = np.mean(data, axis=0)
    deviation = np.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(n) * deviation
    out = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return out


def sparse(r, n, per_row):
    start = np.concatenate([[0], np.cumsum(r.integers(1, per_row, size=n))])
    return start, r.integers(0, n, size=start[-1]), r.normal(size=start[-1]), r.normal(size=n)


@kernel(sparse, (6, 4), (400, 12))
def sparse_product(start, column, value, x):
    """A sparse matrix by rows, times a vector."""
    y = np.empty(start.size - 1, value.dtype)
    for i in range(start.size - 1):
        columns = column[start[i] : start[i + 1]]
        values = value[start[i] : start[i + 1]]
        y[i] = values @ x[columns]
    return y


@kernel(sparse, (6, 4), (400, 12))
def sparse_product_transposed(start, column, value, x):
    """The same of the transpose, by adding at indices that repeat."""
    y = np.zeros_like(x)
    rows = np.repeat(np.arange(len(x)), np.diff(start))
    np.add.at(y, column, value * x[rows])
    return y
