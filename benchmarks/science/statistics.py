"""Statistics that go through their data one by one."""

import math

import numpy as np

from .registry import program


class Running:
    """Mean, variance and extremes of what has been seen, after Welford."""

    def __init__(self):
        self.n = 0
        self.mean = 0.0
        self.m2 = 0.0
        self.low = math.inf
        self.high = -math.inf

    def push(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (x - self.mean)
        if x < self.low:
            self.low = x
        if x > self.high:
            self.high = x

    def variance(self):
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0


@program(lambda r, n: (r.normal(5.0, 2.0, n),), 4000)
def welford(data):
    """Take mean and variance in one pass, leaving out what is far off."""
    running = Running()
    skipped = 0
    for x in data:
        if running.n > 30 and abs(x - running.mean) > 3 * math.sqrt(running.variance()):
            skipped += 1
            continue
        running.push(x)
    return {"n": running.n, "mean": running.mean, "variance": running.variance(), "skipped": skipped}


class Tracker:
    """A smoothed level that a caller keeps between its calls."""

    def __init__(self, alpha):
        self.alpha = alpha
        self.level = None
        self.alarms = 0

    def feed(self, values, tolerance):
        """Follow new values; count those that come as a surprise."""
        for v in values:
            if self.level is None:
                self.level = float(v)
            elif abs(v - self.level) > tolerance:
                self.alarms += 1
                self.level = float(0.5 * (self.level + v))
            else:
                self.level = float(self.level + self.alpha * (v - self.level))
        return self.level


@program(lambda r, n: (Tracker(0.2), np.cumsum(r.normal(size=n)), 1.5), 3000)
def track_level(tracker, values, tolerance):
    """Feed a tracker that belongs to the caller."""
    level = tracker.feed(values, tolerance)
    return level, tracker.alarms


def seasonal(r, n):
    t = np.arange(n)
    return 10 + 0.01 * t + 3 * np.sin(2 * np.pi * t / 12) + 0.2 * r.normal(size=n), 12, 0.3, 0.05, 0.2, "additive"


@program(seasonal, 1500)
def holt_winters(y, m, alpha, beta, gamma, mode):
    """Smooth a level, a trend and a season, added or multiplied."""
    level = float(np.mean(y[:m]))
    trend = 0.0
    season = [float(y[i]) - level if mode == "additive" else float(y[i]) / level for i in range(m)]
    sse = 0.0
    worst, worst_at = 0.0, -1
    for t in range(m, len(y)):
        s = season[t % m]
        if mode == "additive":
            forecast = level + trend + s
        elif mode == "multiplicative":
            forecast = (level + trend) * s
        else:
            raise ValueError(mode)
        error = y[t] - forecast
        sse += error * error
        if abs(error) > worst:
            worst = abs(error)
            worst_at = t
        before = level
        if mode == "additive":
            level = alpha * (y[t] - s) + (1 - alpha) * (level + trend)
            season[t % m] = gamma * (y[t] - level) + (1 - gamma) * s
        else:
            level = alpha * (y[t] / s) + (1 - alpha) * (level + trend)
            season[t % m] = gamma * (y[t] / level) + (1 - gamma) * s
        trend = beta * (level - before) + (1 - beta) * trend
    return level, trend, np.array(season), math.sqrt(sse / (len(y) - m)), worst_at


def clusters(r, n):
    centres = r.uniform(-5, 5, (4, 2))
    return np.concatenate([c + r.normal(size=(n // 4, 2)) for c in centres]), 4, 25, 1e-6


@program(clusters, 80)
def k_means(points, k, most, tolerance):
    """Move centres to the means of the points nearest to them, until they stand still."""
    centres = points[:: len(points) // k][:k].copy()
    labels = np.zeros(len(points), dtype=int)
    for iteration in range(most):
        changed = 0
        for i in range(len(points)):
            best, nearest = np.inf, 0
            for c in range(k):
                d = (points[i, 0] - centres[c, 0]) ** 2 + (points[i, 1] - centres[c, 1]) ** 2
                if d < best:
                    best, nearest = d, c
            if labels[i] != nearest:
                labels[i] = nearest
                changed += 1
        shift = 0.0
        for c in range(k):
            mine = points[labels == c]
            if len(mine) == 0:
                continue
            new = mine.mean(axis=0)
            shift = max(shift, float(np.sum((new - centres[c]) ** 2)))
            centres[c] = new
        if changed == 0 or shift < tolerance:
            break
    return centres, labels, iteration


@program(lambda r, n: (np.concatenate([r.normal(0, 0.3, (n, 2)), r.normal(2, 0.3, (n, 2))]), 0.3, 4), 60)
def dbscan(points, eps, min_points):
    """Cluster by density; noise gets -1."""
    n = len(points)
    labels = np.full(n, -2)
    cluster = -1

    def neighbours(i):
        d = np.sqrt(((points - points[i]) ** 2).sum(axis=1))
        return list(np.flatnonzero(d <= eps))

    for i in range(n):
        if labels[i] != -2:
            continue
        near = neighbours(i)
        if len(near) < min_points:
            labels[i] = -1
            continue
        cluster += 1
        labels[i] = cluster
        queue = near
        k = 0
        while k < len(queue):
            j = queue[k]
            k += 1
            if labels[j] == -1:
                labels[j] = cluster
            if labels[j] != -2:
                continue
            labels[j] = cluster
            more = neighbours(j)
            if len(more) >= min_points:
                queue.extend(more)
    return labels, cluster + 1


def chain(r, n):
    data = r.normal(1.0, 2.0, 30)
    return data, r.normal(size=(n, 2)), np.log(r.random(n)), 0.3


@program(chain, 250)
def metropolis(data, proposals, log_uniform, width):
    """Sample mean and spread of data by Metropolis' rule, adapting the steps while it burns in."""

    def log_posterior(mu, log_sigma):
        if log_sigma < -5 or log_sigma > 5:
            return -np.inf
        sigma = np.exp(log_sigma)
        return -0.5 * np.sum(((data - mu) / sigma) ** 2) - len(data) * log_sigma - 0.5 * mu**2 / 100

    mu, log_sigma = 0.0, 0.0
    current = log_posterior(mu, log_sigma)
    accepted = 0
    samples = []
    for k in range(len(proposals)):
        new_mu = mu + width * proposals[k, 0]
        new_ls = log_sigma + width * proposals[k, 1]
        new = log_posterior(new_mu, new_ls)
        if log_uniform[k] < new - current:
            mu, log_sigma, current = new_mu, new_ls, new
            accepted += 1
        if k < 100 and k % 20 == 19:
            rate = accepted / (k + 1)
            if rate < 0.2:
                width *= 0.7
            elif rate > 0.5:
                width *= 1.4
        if k >= 100:
            samples.append([mu, log_sigma])
    return np.mean(samples, axis=0), accepted / len(proposals), width


@program(lambda r, n: (np.concatenate([r.normal(0, 1, n), r.normal(0.8, 1, n)]), 0.0, 0.25, 8.0), 2000)
def cusum(x, target, slack, limit):
    """Raise an alarm when the mean has shifted; begin anew after each."""
    up = down = 0.0
    since_up = since_down = 0
    alarms = []
    for i in range(len(x)):
        up = max(0.0, up + x[i] - target - slack)
        down = max(0.0, down - x[i] + target - slack)
        since_up = since_up + 1 if up > 0 else 0
        since_down = since_down + 1 if down > 0 else 0
        if up > limit:
            alarms.append((i, i - since_up + 1, "up"))
            up = 0.0
        elif down > limit:
            alarms.append((i, i - since_down + 1, "down"))
            down = 0.0
    return alarms, up, down
