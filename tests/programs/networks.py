"""Layers of networks, forward, and the two loops that train them."""

from itertools import pairwise

import numpy as np

from .registry import kernel


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layers(r, n, *sizes):
    x = r.normal(size=(n, sizes[0]))
    weights = [w for a, b in pairwise(sizes) for w in (r.normal(size=(a, b)), r.normal(size=b))]
    return x, *weights


@kernel(layers, (3, 4, 5, 5, 2), (64, 100, 80, 80, 10))
def perceptron(x, w1, b1, w2, b2, w3, b3):
    """Three layers and a softmax."""
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


@kernel(lambda r, n, m: (r.normal(size=(n, 2, m, m)),), (2, 3), (16, 32))
def softmax_in_place(x):
    """Softmax of four dimensions over the last, in the memory of one array."""
    out = np.empty_like(x)
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def convolve(images, weights):
    k = weights.shape[0]
    n, height, width = images.shape[0], images.shape[1] - k + 1, images.shape[2] - k + 1
    out = np.empty((n, height, width, weights.shape[3]), dtype=images.dtype)
    for i in range(height):
        for j in range(width):
            out[:, i, j, :] = np.sum(
                images[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out


def pool(x):
    out = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]), dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


def floats(r, *shape):
    return r.normal(size=shape).astype(np.float32)


@kernel(lambda r, n, m: (floats(r, n, m, m, 2), floats(r, 3, 3, 2, 4), floats(r, 4)), (2, 5), (4, 20))
def convolution_layer(images, weights, bias):
    """A convolution with channels, pixel by pixel, in single precision."""
    return convolve(images, weights) + bias


@kernel(lambda r, n, m: (floats(r, n, m, m, 3), floats(r, 3), floats(r, 3)), (2, 4), (8, 24))
def batch_normalisation(x, gain, bias):
    """Means and variances over a batch, then a pooling."""
    mean = np.mean(x, axis=(0, 1, 2), keepdims=True)
    deviation = np.std(x, axis=(0, 1, 2), keepdims=True)
    x -= mean
    x /= np.sqrt(deviation + 1e-5)
    return pool(gain * x + bias)


def lenet_weights(r, n, m):
    side = ((m - 2) // 2 - 2) // 2
    sizes = side * side * 4
    return (
        floats(r, n, m, m, 1), floats(r, 3, 3, 1, 3), floats(r, 3), floats(r, 3, 3, 3, 4), floats(r, 4),
        floats(r, sizes, 10), floats(r, 10), floats(r, 10, 5), floats(r, 5),
    )  # fmt: skip


@kernel(lenet_weights, (2, 10), (4, 18))
def lenet(x, c1, b1, c2, b2, w1, d1, w2, d2):
    """Two convolutions with pools, two dense layers."""
    x = pool(relu(convolve(x, c1) + b1))
    x = pool(relu(convolve(x, c2) + b2))
    x = np.reshape(x, (x.shape[0], -1))
    return relu(x @ w1 + d1) @ w2 + d2


@kernel(lambda r, n, d, heads: (floats(r, n, d), *(floats(r, d, d) for _ in range(4)), heads), (4, 6, 2), (48, 64, 4))
def attention(x, wq, wk, wv, wo, heads):
    """Causal attention, a head at a time, each into its slice."""
    n, d = x.shape
    size = d // heads
    q, k, v = x @ wq, x @ wk, x @ wv
    mask = np.triu(np.full((n, n), -np.inf, dtype=x.dtype), 1)
    out = np.zeros_like(x)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = q[:, part] @ k[:, part].T / np.sqrt(np.float32(size))
        scores += mask
        out[:, part] = softmax(scores) @ v[:, part]
    return out @ wo


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def recurrent(gates):
    def inputs(r, steps, n, m):
        scale = 0.3
        return r.normal(size=(steps, n)), *(
            scale * r.normal(size=s) for s in ((n, gates * m), (m, gates * m), (gates * m,))
        )

    return inputs


@kernel(recurrent(4), (3, 2, 3), (100, 16, 24))
def lstm(xs, wx, wh, b):
    """Long short-term memory over a sequence, every state kept."""
    m = wh.shape[0]
    h, c = np.zeros(m), np.zeros(m)
    states = np.zeros((len(xs), m))
    for t, x in enumerate(xs):
        gates = x @ wx + h @ wh + b
        i, f, o = sigmoid(gates[:m]), sigmoid(gates[m : 2 * m]), sigmoid(gates[2 * m : 3 * m])
        c = f * c + i * np.tanh(gates[3 * m :])
        h = o * np.tanh(c)
        states[t] = h
    return states, c


@kernel(recurrent(3), (3, 2, 3), (100, 16, 24))
def gru(xs, wx, wh, b):
    """Gated recurrent units; only the last state counts."""
    m = wh.shape[0]
    h = np.zeros(m)
    for x in xs:
        z, r = np.split(sigmoid(x @ wx[:, : 2 * m] + h @ wh[:, : 2 * m] + b[: 2 * m]), 2)
        candidate = np.tanh(x @ wx[:, 2 * m :] + (r * h) @ wh[:, 2 * m :] + b[2 * m :])
        h += (1 - z) * (candidate - h)
    return h


def training(r, steps, n, d, m):
    return r.normal(size=(n, d)), r.normal(size=n), 0.3 * r.normal(size=(d, m)), 0.3 * r.normal(size=m), steps


@kernel(training, (3, 6, 3, 4), (60, 64, 10, 16))
def train_by_hand(x, y, w1, w2, steps):
    """Descent with gradients by hand; the weights are the arguments, and change."""
    losses = []
    for _ in range(steps):
        hidden = np.tanh(x @ w1)
        error = hidden @ w2 - y
        losses.append(float(np.mean(error**2)))
        upstream = 2 * error / len(y)
        g2 = hidden.T @ upstream
        g1 = x.T @ (np.outer(upstream, w2) * (1 - hidden**2))
        w1 -= 0.05 * g1
        w2 -= 0.05 * g2
    return losses


class Adam:
    """Adam's moments of a list of arrays, which it changes."""

    def __init__(self, parameters, rate=0.01):
        self.parameters, self.rate, self.count = parameters, rate, 0
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]

    def step(self, gradients):
        self.count += 1
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            p -= self.rate * (m / (1 - 0.9**self.count)) / (np.sqrt(v / (1 - 0.999**self.count)) + 1e-8)


@kernel(
    lambda r, steps, n, d: (r.normal(size=(n, d)), r.normal(size=n), r.normal(size=d), np.zeros(1), steps),
    (3, 6, 3),
    (100, 60, 12),
)
def train_by_adam(x, y, w, b, steps):
    """Least squares by an optimiser that is an object."""
    optimiser = Adam([w, b])
    for _ in range(steps):
        error = x @ w + b - y
        optimiser.step([x.T @ error / len(y), error.mean(keepdims=True)])
    return w, b


@kernel(lambda r, n, d: (floats(r, n, d), floats(r, d), floats(r, d)), (3, 5), (200, 128))
def normalise_layers(x, gain, bias):
    """Layer normalisation and a GELU, in place."""
    mean = x.mean(axis=-1, keepdims=True)
    x -= mean
    variance = (x * x).mean(axis=-1, keepdims=True)
    x /= np.sqrt(variance + np.float32(1e-5))
    x *= gain
    x += bias
    inner = np.float32(0.7978846) * (x + np.float32(0.044715) * x**3)
    x *= np.float32(0.5) * (1 + np.tanh(inner))
