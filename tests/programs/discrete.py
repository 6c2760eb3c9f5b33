"""Integers, bits, labels: tables, automata, graphs."""

import numpy as np

from .registry import kernel


@kernel(lambda r, n: (r.integers(0, 256, size=n).astype(np.uint8),), 5, 800)
def crc16(data, polynomial=0x8408):
    """A checksum, bit by bit."""
    crc = 0xFFFF
    for b in data:
        current = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (current & 0x0001):
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


@kernel(lambda r, n, steps: (r.integers(0, 2, size=(n, n)), steps), (6, 3), (100, 30))
def game_of_life(board, steps):
    """Life, inside a frame that stays empty."""
    for _ in range(steps):
        around = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
            + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        birth = (around == 3) & (board[1:-1, 1:-1] == 0)
        survive = ((around == 2) | (around == 3)) & (board[1:-1, 1:-1] == 1)
        board[...] = 0
        board[1:-1, 1:-1][birth | survive] = 1
    return board


@kernel(lambda r, n, steps: (r.integers(0, 2, size=n).astype(np.uint8), 30, steps), (8, 3), (300, 150))
def elementary_automaton(cells, rule, steps):
    """A line of cells by a rule of eight bits, every generation a row."""
    table = np.array([(rule >> k) & 1 for k in range(8)], dtype=np.uint8)
    history = np.empty((steps + 1, len(cells)), dtype=np.uint8)
    history[0] = cells
    for t in range(steps):
        row = history[t]
        history[t + 1] = table[4 * np.roll(row, 1) + 2 * row + np.roll(row, -1)]
    return history


@kernel(lambda r, n, k: (r.normal(size=(n, 2)), k, 20), (8, 2), (400, 5))
def k_means(points, k, rounds):
    """Centres that move to the mean of their points, until none moves."""
    centres = points[:k].copy()
    for _ in range(rounds):
        distance = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
        labels = distance.argmin(axis=1)
        new = centres.copy()
        for j in range(k):
            mine = points[labels == j]
            if len(mine):
                new[j] = mine.mean(axis=0)
        if np.allclose(new, centres):
            break
        centres = new
    return centres, labels


@kernel(lambda r, n: (r.uniform(size=(n, n)) < 0.6,), 5, 40)
def connected_labels(mask):
    """Labels that spread to their neighbours until nothing changes."""
    labels = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        before = labels.copy()
        labels[1:] = np.where(mask[1:] & mask[:-1], np.maximum(labels[1:], labels[:-1]), labels[1:])
        labels[:-1] = np.where(mask[1:] & mask[:-1], np.maximum(labels[1:], labels[:-1]), labels[:-1])
        labels[:, 1:] = np.where(mask[:, 1:] & mask[:, :-1], np.maximum(labels[:, 1:], labels[:, :-1]), labels[:, 1:])
        labels[:, :-1] = np.where(mask[:, 1:] & mask[:, :-1], np.maximum(labels[:, 1:], labels[:, :-1]), labels[:, :-1])
        if np.array_equal(labels, before):
            return labels


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel(lambda r, n, m: (n, r.integers(0, n, size=(m, 2))), (6, 4), (200, 150))
def union_find(n, edges):
    """Which nodes hang together, by parents that are shortened."""
    parent = np.arange(n)
    for a, b in edges:
        ra, rb = find(parent, a), find(parent, b)
        if ra != rb:
            parent[rb] = ra
    return np.array([find(parent, i) for i in range(n)])


@kernel(lambda r, n: (n + int(r.integers(0, 5)),), 30, 20000)
def sieve(n):
    """The primes below n."""
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return np.nonzero(prime)[0]


@kernel(lambda r, n: (r.integers(0, 100, size=n),), 6, 60)
def bubble_sort(a):
    """Neighbours that change places until none has to."""
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break


@kernel(lambda r, n: (r.uniform(size=(n, n)) < 0.3, 0.85), 5, 150)
def page_rank(links, damping):
    """Ranks of pages, until they change no more."""
    n = len(links)
    out = links.sum(axis=1)
    move = np.zeros((n, n))
    for i in range(n):
        if out[i] == 0:
            move[:, i] = 1.0 / n
        else:
            move[:, i] = links[i] / out[i]
    rank = np.ones(n) / n
    change = 1.0
    while change > 1e-10:
        new = (1 - damping) / n + damping * move @ rank
        change = np.abs(new - rank).sum()
        rank = new
    return rank


@kernel(lambda r, n: (r.uniform(size=(n, n)) < 0.2, 0), 6, 120)
def levels(adjacent, start):
    """How far every node is from a start, by a frontier that moves."""
    n = adjacent.shape[0]
    level = np.full(n, -1)
    level[start] = 0
    frontier = np.zeros(n, dtype=bool)
    frontier[start] = True
    depth = 0
    while frontier.any():
        depth += 1
        reached = adjacent[frontier].any(axis=0)
        frontier = reached & (level < 0)
        level[frontier] = depth
    return level


@kernel(lambda r, n: (12345 + int(r.integers(0, 9)), n), 6, 3000)
def linear_congruence(seed, n):
    """Numbers like chance, in integers that wrap round."""
    out = np.empty(n, dtype=np.uint64)
    state = np.uint64(seed)
    with np.errstate(over="ignore"):
        for i in range(n):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            out[i] = state >> np.uint64(33)
    return out
