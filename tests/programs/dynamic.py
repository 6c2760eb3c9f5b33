"""Tables that are filled from their own earlier entries."""

import numpy as np

from .registry import kernel


def distances(r, n):
    return (r.uniform(1, 100, size=(n, n)),)


@kernel(distances, 6, 100)
def floyd_warshall(path):
    """All shortest paths, in place."""
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


def words(r, n, m):
    return r.integers(0, 4, size=n), r.integers(0, 4, size=m)


@kernel(words, (5, 6), (50, 60))
def edit_distance(a, b):
    """Levenshtein's distance, entry by entry."""
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=np.int64)
    table[:, 0] = np.arange(n + 1)
    table[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[n, m]


@kernel(words, (5, 6), (50, 60))
def smith_waterman(a, b):
    """The best local alignment: the table and where it is largest."""
    score = np.zeros((len(a) + 1, len(b) + 1))
    best, where = 0.0, (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            match = score[i - 1, j - 1] + (2.0 if a[i - 1] == b[j - 1] else -1.0)
            score[i, j] = max(0.0, match, score[i - 1, j] - 1.0, score[i, j - 1] - 1.0)
            if score[i, j] > best:
                best, where = score[i, j], (i, j)
    return score, best, where


def match(b1, b2):
    return 1 if b1 + b2 == 3 else 0


@kernel(lambda r, n: (r.integers(0, 4, size=n),), 6, 25)
def nussinov(sequence):
    """Base pairs of RNA: the most that nest."""
    n = len(sequence)
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(sequence[i], sequence[j]))
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@kernel(lambda r, n, capacity: (r.integers(1, 10, size=n), r.uniform(1, 9, size=n), capacity), (5, 12), (60, 500))
def knapsack(weights, values, capacity):
    """The most that fits, an item at a time over all capacities."""
    best = np.zeros(capacity + 1)
    for w, v in zip(weights, values, strict=True):
        best[w:] = np.maximum(best[w:], best[:-w] + v)
    return best[-1]


def chain(r, n, states):
    steps = [r.uniform(size=shape) for shape in ((states,), (states, states), (n, states))]
    return tuple(np.log(a) for a in steps)


@kernel(chain, (6, 3), (300, 12))
def viterbi(start, move, seen):
    """The likeliest path through hidden states, followed backwards."""
    n, states = seen.shape
    score = np.empty((n, states))
    back = np.zeros((n, states), dtype=int)
    score[0] = start + seen[0]
    for t in range(1, n):
        through = score[t - 1][:, None] + move
        back[t] = through.argmax(axis=0)
        score[t] = through.max(axis=0) + seen[t]
    path = np.zeros(n, dtype=int)
    path[-1] = np.argmax(score[-1])
    for t in range(n - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path, score[-1].max()


@kernel(lambda r, n, m: (r.normal(size=n), r.normal(size=m)), (5, 6), (40, 50))
def time_warping(x, y):
    """The cost of the cheapest way of stretching one series onto another."""
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            cost[i, j] = abs(x[i - 1] - y[j - 1]) + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[-1, -1]


@kernel(lambda r, n: (r.integers(2, 30, size=n),), 6, 25)
def matrix_chain(sizes):
    """Where to put the brackets: the fewest multiplications."""
    n = len(sizes) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = cost[i, i:j] + cost[i + 1 : j + 1, j] + sizes[i] * sizes[i + 1 : j + 1] * sizes[j + 1]
            cost[i, j] = options.min()
    return cost[0, -1]


@kernel(lambda r, n, m: (r.uniform(size=(n, m)),), (5, 6), (100, 120))
def cheapest_seam(energy):
    """The path from top to bottom that costs least: sums downwards, then its columns upwards."""
    total = energy.copy()
    rows, columns = total.shape
    for i in range(1, rows):
        above = total[i - 1]
        least = above.copy()
        least[1:] = np.minimum(least[1:], above[:-1])
        least[:-1] = np.minimum(least[:-1], above[1:])
        total[i] += least
    seam = np.zeros(rows, dtype=np.intp)
    seam[-1] = total[-1].argmin()
    for i in range(rows - 2, -1, -1):
        left = max(seam[i + 1] - 1, 0)
        right = min(seam[i + 1] + 2, columns)
        seam[i] = left + np.argmin(total[i, left:right])
    return seam
