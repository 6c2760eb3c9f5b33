"""Prices, options and orders."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: (float(r.uniform(90, 110)), 100.0, 0.03, 0.25, 1.0, n, "put"), 80)
def american_option(s, k, rate, sigma, t, n, kind):
    """Price an American option on a binomial tree."""
    dt = t / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1.0 / u
    p = (math.exp(rate * dt) - d) / (u - d)
    discount = math.exp(-rate * dt)
    sign = 1.0 if kind == "call" else -1.0
    values = [max(0.0, sign * (s * u**j * d ** (n - j) - k)) for j in range(n + 1)]
    early = 0
    for step in range(n - 1, -1, -1):
        for j in range(step + 1):
            hold = discount * (p * values[j + 1] + (1 - p) * values[j])
            exercise = sign * (s * u**j * d ** (step - j) - k)
            if exercise > hold:
                values[j] = exercise
                early += 1
            else:
                values[j] = hold
    return values[0], early


def orders(r, n):
    side = r.integers(0, 2, n)
    price = np.round(100 + r.normal(size=n) * 0.5, 1)
    return side, price, r.integers(1, 20, n)


@program(orders, 400)
def match_orders(side, price, quantity):
    """Match orders against a book of bids and asks, by price and then by time."""
    bids = []
    asks = []
    trades = []
    volume = 0
    for i in range(len(side)):
        p, q = price[i], quantity[i]
        if side[i] == 0:
            while q > 0 and asks and asks[0][0] <= p:
                ask_price, ask_quantity = asks[0]
                traded = min(q, ask_quantity)
                trades.append((ask_price, traded))
                volume += traded
                q -= traded
                if traded == ask_quantity:
                    asks.pop(0)
                else:
                    asks[0] = (ask_price, ask_quantity - traded)
            if q > 0:
                k = 0
                while k < len(bids) and bids[k][0] >= p:
                    k += 1
                bids.insert(k, (p, q))
        else:
            while q > 0 and bids and bids[0][0] >= p:
                bid_price, bid_quantity = bids[0]
                traded = min(q, bid_quantity)
                trades.append((bid_price, traded))
                volume += traded
                q -= traded
                if traded == bid_quantity:
                    bids.pop(0)
                else:
                    bids[0] = (bid_price, bid_quantity - traded)
            if q > 0:
                k = 0
                while k < len(asks) and asks[k][0] <= p:
                    k += 1
                asks.insert(k, (p, q))
    return np.array(trades), volume, len(bids), len(asks)


def norm_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def black_scholes(s, k, t, r, sigma):
    d1 = (math.log(s / k) + (r + 0.5 * sigma * sigma) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    price = s * norm_cdf(d1) - k * math.exp(-r * t) * norm_cdf(d2)
    vega = s * math.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi) * math.sqrt(t)
    return price, vega


def quotes(r, n):
    strikes = r.uniform(80, 120, n)
    prices = np.array([black_scholes(100.0, k, 0.5, 0.02, v)[0] for k, v in zip(strikes, r.uniform(0.1, 0.6, n))])
    return prices, 100.0, strikes, 0.5, 0.02


@program(quotes, 100)
def implied_volatility(prices, s, strikes, t, rate):
    """Solve for implied volatilities by Newton's method, kept between bounds by bisection."""
    out = np.zeros(len(prices))
    iterations = 0
    for i in range(len(prices)):
        low, high = 0.001, 4.0
        sigma = 0.3
        for _ in range(60):
            iterations += 1
            price, vega = black_scholes(s, strikes[i], t, rate, sigma)
            diff = price - prices[i]
            if abs(diff) < 1e-8:
                break
            if diff > 0:
                high = sigma
            else:
                low = sigma
            if vega > 1e-8:
                guess = sigma - diff / vega
            else:
                guess = -1.0
            if guess <= low or guess >= high:
                guess = 0.5 * (low + high)
            sigma = guess
        out[i] = sigma
    return out, iterations


@program(lambda r, n: (100 * np.exp(np.cumsum(r.normal(size=n) * 0.01)), 10, 30, 0.05), 2500)
def trailing_stop(price, fast, slow, stop):
    """Trade the crossing of two averages with a trailing stop, and tell the trades and the worst loss."""
    a = b = price[0]
    cash, shares = 1000.0, 0.0
    top = 0.0
    peak = cash
    worst = 0.0
    trades = []
    for i in range(1, len(price)):
        before = a > b
        a += (price[i] - a) * 2.0 / (fast + 1)
        b += (price[i] - b) * 2.0 / (slow + 1)
        if shares > 0:
            top = max(top, price[i])
            if price[i] < top * (1 - stop) or (before and a < b):
                cash = shares * price[i]
                shares = 0.0
                trades.append((i, "sell", cash))
        elif not before and a > b:
            shares = cash / price[i]
            cash = 0.0
            top = price[i]
            trades.append((i, "buy", shares))
        wealth = cash + shares * price[i]
        if wealth > peak:
            peak = wealth
        elif 1 - wealth / peak > worst:
            worst = 1 - wealth / peak
    return {"wealth": wealth, "worst": worst, "trades": trades}


@program(lambda r, n: (r.normal(size=(n, 50)), 100.0, 105.0, 85.0, 0.3), 80)
def barrier_option(z, s0, strike, barrier, sigma):
    """Price a down-and-out call over given random numbers, with its standard error."""
    dt = 1.0 / z.shape[1]
    total = 0.0
    squares = 0.0
    knocked = 0
    for path in range(z.shape[0]):
        s = s0
        alive = True
        for k in range(z.shape[1]):
            s *= math.exp(-0.5 * sigma**2 * dt + sigma * math.sqrt(dt) * z[path, k])
            if s < barrier:
                alive = False
                knocked += 1
                break
        if alive and s > strike:
            total += s - strike
            squares += (s - strike) ** 2
    n = z.shape[0]
    mean = total / n
    return mean, math.sqrt(max(squares / n - mean * mean, 0.0) / n), knocked


class Account:
    """Cash and holdings that are brought back to their weights once they have drifted too far."""

    def __init__(self, weights, cash):
        self.weights = weights
        self.units = np.zeros(len(weights))
        self.cash = cash
        self.fees = 0.0
        self.n = 0

    def value(self, prices):
        return self.cash + np.dot(self.units, prices)

    def rebalance(self, prices, fee):
        value = self.value(prices)
        target = self.weights * value / prices
        cost = fee * np.sum(np.abs(target - self.units) * prices)
        self.cash = value - cost - np.dot(target, prices)
        self.units = target
        self.fees += cost
        self.n += 1


@program(lambda r, n: (50 * np.exp(np.cumsum(r.normal(size=(n, 4)) * 0.02, axis=0)), 0.04, 0.001), 200)
def rebalance_portfolio(prices, drift, fee):
    """Hold four assets in equal parts and trade only when one has drifted."""
    account = Account(np.full(prices.shape[1], 0.25), 10000.0)
    account.rebalance(prices[0], fee)
    values = []
    for today in prices[1:]:
        value = account.value(today)
        weights = account.units * today / value
        if np.max(np.abs(weights - account.weights)) > drift:
            account.rebalance(today, fee)
        values.append(value)
    return np.array(values), account.fees, account.n
