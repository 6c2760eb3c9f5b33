"""Sequences: codes 0 to 3 for A, C, G and T."""

import numpy as np

from .registry import program


def two_sequences(r, n):
    a = r.integers(0, 4, n)
    b = a.copy()
    b[r.random(n) < 0.15] = r.integers(0, 4)
    return a, np.delete(b, r.integers(0, n, n // 10))


@program(lambda r, n: (*two_sequences(r, n), 2, -1, -2), 55)
def smith_waterman(a, b, match, mismatch, gap):
    """Score the best local alignment and tell where it ends."""
    h = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    best = 0
    where = (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = match if a[i - 1] == b[j - 1] else mismatch
            score = max(0, h[i - 1, j - 1] + s, h[i - 1, j] + gap, h[i, j - 1] + gap)
            h[i, j] = score
            if score > best:
                best = score
                where = (i, j)
    return h, best, where


@program(lambda r, n: (*two_sequences(r, n), -1.5), 45)
def needleman_wunsch(a, b, gap):
    """Align two sequences from end to end, and trace the alignment back."""
    n, m = len(a), len(b)
    f = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        f[i, 0] = gap * i
    for j in range(m + 1):
        f[0, j] = gap * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            diagonal = f[i - 1, j - 1] + (1.0 if a[i - 1] == b[j - 1] else -1.0)
            up = f[i - 1, j] + gap
            left = f[i, j - 1] + gap
            best = diagonal
            if up > best:
                best = up
            if left > best:
                best = left
            f[i, j] = best
    top, bottom = [], []
    i, j = n, m
    while i > 0 or j > 0:
        if i > 0 and j > 0 and f[i, j] == f[i - 1, j - 1] + (1.0 if a[i - 1] == b[j - 1] else -1.0):
            top.append(int(a[i - 1]))
            bottom.append(int(b[j - 1]))
            i -= 1
            j -= 1
        elif i > 0 and f[i, j] == f[i - 1, j] + gap:
            top.append(int(a[i - 1]))
            bottom.append(-1)
            i -= 1
        else:
            top.append(-1)
            bottom.append(int(b[j - 1]))
            j -= 1
    return f[n, m], top[::-1], bottom[::-1]


def hidden(r, n):
    transition = np.log(r.dirichlet(np.ones(4) + 5 * np.eye(4)[0], 4))
    return r.integers(0, 4, n), np.log(np.full(4, 0.25)), transition, np.log(r.dirichlet(np.ones(4), 4))


@program(hidden, 120)
def viterbi(observed, start, transition, emission):
    """Find the likeliest path of hidden states."""
    n_states = len(start)
    t_max = len(observed)
    score = np.full((t_max, n_states), -np.inf)
    back = np.zeros((t_max, n_states), dtype=np.int64)
    for s in range(n_states):
        score[0, s] = start[s] + emission[s, observed[0]]
    for t in range(1, t_max):
        for s in range(n_states):
            for p in range(n_states):
                v = score[t - 1, p] + transition[p, s]
                if v > score[t, s]:
                    score[t, s] = v
                    back[t, s] = p
            score[t, s] += emission[s, observed[t]]
    path = [int(np.argmax(score[-1]))]
    for t in range(t_max - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    path.reverse()
    return path, float(np.max(score[-1]))


@program(lambda r, n: (*two_sequences(r, n), 20), 100)
def edit_distance(a, b, most):
    """Count edits between two sequences, row by row, giving up beyond a limit."""
    previous = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        current = [i]
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                current.append(previous[j - 1])
            else:
                current.append(1 + min(previous[j - 1], previous[j], current[j - 1]))
        if min(current) > most:
            return -1
        previous = current
    return previous[-1]


@program(lambda r, n: (r.integers(0, 4, n), 10), 4000)
def open_reading_frames(genome, shortest):
    """List what lies between start and stop codons, in three frames."""
    stops = {(3, 0, 0), (3, 0, 2), (3, 2, 0)}
    found = []
    longest = 0
    for frame in range(3):
        begin = -1
        i = frame
        while i + 3 <= len(genome):
            codon = (int(genome[i]), int(genome[i + 1]), int(genome[i + 2]))
            if begin < 0 and codon == (0, 3, 2):
                begin = i
            elif begin >= 0 and codon in stops:
                length = (i - begin) // 3
                if length >= shortest:
                    found.append((frame, begin, i + 3))
                longest = max(longest, length)
                begin = -1
            i += 3
    return found, longest


@program(lambda r, n: (r.integers(0, 4, n), 4), 28)
def nussinov(rna, loop):
    """Pair as many bases of a strand as possible."""
    n = len(rna)
    table = np.zeros((n, n), dtype=int)
    for span in range(loop, n):
        for i in range(n - span):
            j = i + span
            best = max(table[i + 1, j], table[i, j - 1])
            if rna[i] + rna[j] == 3:
                inner = table[i + 1, j - 1] if i + 1 <= j - 1 else 0
                best = max(best, inner + 1)
            for k in range(i + 1, j):
                both = table[i, k] + table[k + 1, j]
                if both > best:
                    best = both
            table[i, j] = best
    return table, int(table[0, n - 1])
