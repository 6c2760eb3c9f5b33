"""Series in time: each value from those before it."""

import numpy as np

from .registry import kernel


def tracked(r, steps):
    f = np.array([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    return np.cumsum(r.normal(size=(steps, 2)), axis=0), f, np.eye(2, 4), 0.01 * np.eye(4), 0.5 * np.eye(2)


@kernel(tracked, 4, 300)
def kalman_track(z, f, h, q, r):
    """A Kalman filter over measurements: every estimate, the last covariance."""
    n = f.shape[0]
    x = np.zeros(n)
    p = np.eye(n) * 10.0
    track = np.zeros((len(z), n))
    for t in range(len(z)):
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = p @ h.T @ np.linalg.inv(s)
        x = x + gain @ (z[t] - h @ x)
        p = (np.eye(n) - gain @ h) @ p
        track[t] = x
    return track, p


@kernel(lambda r, n: (r.normal(size=n), 0.3), 6, 5000)
def ewma(x, alpha):
    """An average that forgets."""
    out = np.empty_like(x)
    out[0] = x[0]
    for t in range(1, len(x)):
        out[t] = alpha * x[t] + (1 - alpha) * out[t - 1]
    return out


@kernel(lambda r, n: (r.normal(size=n), np.array([0.5, -0.2, 0.1])), 8, 2000)
def autoregression(noise, phi):
    """A series that is drawn from its own last values."""
    p = len(phi)
    y = np.zeros(len(noise) + p)
    for t in range(p, len(y)):
        y[t] = phi @ y[t - p : t][::-1] + noise[t - p]
    return y[p:]


@kernel(lambda r, n: (r.normal(size=n), 0.05, 0.1, 0.85), 6, 3000)
def garch(returns, omega, alpha, beta):
    """Variances that follow what has happened, and how likely it was."""
    variance = np.zeros_like(returns)
    variance[0] = np.var(returns)
    likelihood = 0.0
    for t in range(1, returns.size):
        variance[t] = omega + alpha * returns[t - 1] ** 2 + beta * variance[t - 1]
        likelihood -= 0.5 * (np.log(variance[t]) + returns[t] ** 2 / variance[t])
    return variance, likelihood


@kernel(lambda r, n, period: (r.uniform(1, 2, size=n), period), (9, 3), (1000, 12))
def holt_winters(y, period):
    """Level, trend and season, with forecasts of what comes next."""
    level, trend = y[:period].mean(), 0.0
    season = y[:period] - level
    fitted = np.zeros_like(y)
    for t in range(len(y)):
        s = t % period
        fitted[t] = level + trend + season[s]
        last = level
        level = 0.3 * (y[t] - season[s]) + 0.7 * (level + trend)
        trend = 0.1 * (level - last) + 0.9 * trend
        season[s] = 0.2 * (y[t] - level) + 0.8 * season[s]
    return fitted, season


@kernel(lambda r, n: (r.normal(size=n), 0.2, 2.0), 8, 3000)
def cusum(x, drift, threshold):
    """Where a series leaves its mean: alarms, after each of which the sums begin anew."""
    high = low = 0.0
    alarms = []
    for t in range(len(x)):
        high = max(0.0, high + x[t] - drift)
        low = min(0.0, low + x[t] + drift)
        if high > threshold or low < -threshold:
            alarms.append(t)
            high = low = 0.0
    return np.array(alarms, dtype=int)


@kernel(lambda r, n, taps: (r.normal(size=n), r.normal(size=n), taps, 0.01), (8, 3), (1500, 16))
def adaptive_filter(x, wanted, taps, rate):
    """Least mean squares: weights that learn from each error."""
    w = np.zeros(taps)
    errors = np.zeros(len(x))
    for t in range(taps, len(x)):
        window = x[t - taps : t][::-1]
        errors[t] = wanted[t] - w @ window
        w += 2 * rate * errors[t] * window
    return w, errors


@kernel(
    lambda r, n, states: tuple(
        a / a.sum(axis=-1, keepdims=True)
        for a in (r.uniform(size=states), r.uniform(size=(states, states)), r.uniform(size=(n, states)))
    ),
    (4, 3),
    (500, 8),
)
def forward_backward(start, move, seen):
    """What a hidden chain was likely doing, with scaling so that nothing vanishes."""
    n, k = seen.shape
    alpha, beta, scale = np.zeros((n, k)), np.ones((n, k)), np.zeros(n)
    alpha[0] = start * seen[0]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, n):
        alpha[t] = (alpha[t - 1] @ move) * seen[t]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in range(n - 2, -1, -1):
        beta[t] = move @ (seen[t + 1] * beta[t + 1]) / scale[t + 1]
    return alpha * beta, np.log(scale).sum()


@kernel(lambda r, n, window: (r.normal(size=n), window), (9, 3), (2000, 20))
def rolling(x, window):
    """Means and largest values of windows, by what enters and what leaves."""
    means = np.full(len(x), np.nan)
    most = np.full_like(x, np.nan)
    total = x[:window].sum()
    means[window - 1] = total / window
    for t in range(window, len(x)):
        total += x[t] - x[t - window]
        means[t] = total / window
    for t in range(window - 1, len(x)):
        most[t] = np.max(x[t - window + 1 : t + 1])
    return means, most
