"""Filters over images: windows, tables of weights, recursions along rows and columns."""

import numpy as np

from .registry import kernel


def picture(r, n, m):
    return (r.uniform(0, 255, size=(n, m)),)


@kernel(picture, (6, 7), (300, 300))
def sobel(image):
    """Edges: how steep, and which way."""
    gx = np.zeros_like(image)
    gy = np.zeros_like(image)
    gx[1:-1, 1:-1] = (
        image[:-2, 2:] - image[:-2, :-2] + 2 * (image[1:-1, 2:] - image[1:-1, :-2]) + image[2:, 2:] - image[2:, :-2]
    )
    gy[1:-1, 1:-1] = (
        image[2:, :-2] - image[:-2, :-2] + 2 * (image[2:, 1:-1] - image[:-2, 1:-1]) + image[2:, 2:] - image[:-2, 2:]
    )
    steep = np.hypot(gx, gy)
    steep *= 255.0 / steep.max()
    return steep.astype(np.uint8), np.arctan2(gy, gx)


@kernel(picture, (6, 7), (100, 100))
def median_filter(image):
    """The middle of nine neighbours, stacked."""
    n, m = image.shape
    stack = np.empty((9, n - 2, m - 2))
    k = 0
    for i in range(3):
        for j in range(3):
            stack[k] = image[i : n - 2 + i, j : m - 2 + j]
            k += 1
    stack.sort(axis=0)
    out = image.copy()
    out[1:-1, 1:-1] = stack[4]
    return out


@kernel(picture, (5, 6), (60, 60))
def bilateral(image):
    """A blur that keeps edges: weights by distance and by difference."""
    radius = 2
    padded = np.pad(image, radius, mode="edge")
    total = np.zeros_like(image)
    weight = np.zeros_like(image)
    h, w = image.shape
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            near = padded[radius + dy : radius + dy + h, radius + dx : radius + dx + w]
            factor = np.exp(-(dx * dx + dy * dy) / 8.0 - (near - image) ** 2 / 800.0)
            total += factor * near
            weight += factor
    total /= weight
    return total


@kernel(lambda r, n, m: (r.integers(0, 256, size=(n, m)).astype(np.uint8),), (6, 7), (60, 60))
def equalise(image):
    """The histogram, counted by hand, and the image with its grey values spread by it."""
    counts = np.zeros(256, dtype=np.int64)
    for value in image.ravel():
        counts[value] += 1
    total = np.cumsum(counts)
    first = total[total > 0][0]
    table = np.round((total - first) / (image.size - first) * 255).astype(np.uint8)
    return table[image]


@kernel(lambda r, n, bins: (r.uniform(size=(n, n)), bins), (8, 4), (200, 30))
def azimuthal_integration(image, bins):
    """The mean over rings, a ring at a time."""
    y, x = np.indices(image.shape)
    radius = np.sqrt((x - image.shape[1] / 2) ** 2 + (y - image.shape[0] / 2) ** 2)
    edges = np.linspace(0, radius.max(), bins + 1)
    means = np.empty(bins)
    for i in range(bins):
        inside = np.logical_and(radius >= edges[i], radius < edges[i + 1])
        means[i] = image[inside].mean() if inside.any() else 0.0
    return means


@kernel(lambda r, n, k: (r.normal(size=(n, n)), r.normal(size=(k, k))), (7, 3), (60, 5))
def convolve_by_windows(image, mask):
    """A convolution, window by window."""
    k = mask.shape[0]
    n = image.shape[0] - k + 1
    out = np.zeros((n, n))
    flipped = mask[::-1, ::-1]
    for i in range(n):
        for j in range(n):
            out[i, j] = np.sum(image[i : i + k, j : j + k] * flipped)
    return out


@kernel(picture, (5, 6), (64, 64))
def deriche(image):
    """A recursive blur: along each row there and back, then along each column."""
    alpha = 0.25
    k = (1 - np.exp(-alpha)) ** 2 / (1 + alpha * np.exp(-alpha) - np.exp(2 * alpha))
    a1, a2 = k, k * np.exp(-alpha) * (alpha - 1)
    b1, b2 = 2 ** (-alpha), -np.exp(-2 * alpha)
    there = np.zeros_like(image)
    back = np.zeros_like(image)
    there[:, 0] = a1 * image[:, 0]
    there[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * there[:, 0]
    for j in range(2, image.shape[1]):
        there[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * there[:, j - 1] + b2 * there[:, j - 2]
    for j in range(image.shape[1] - 3, -1, -1):
        back[:, j] = a1 * image[:, j + 1] + a2 * image[:, j + 2] + b1 * back[:, j + 1] + b2 * back[:, j + 2]
    out = there + back
    for i in range(1, out.shape[0]):
        out[i] = (1 - b1) * out[i] + b1 * out[i - 1]
    return out


@kernel(lambda r, n, size: (r.normal(size=(n, n)), size), (6, 3), (200, 9))
def box_blur(image, size):
    """Means of windows by the sums of everything above and left."""
    total = np.zeros((image.shape[0] + 1, image.shape[1] + 1))
    total[1:, 1:] = image.cumsum(axis=0).cumsum(axis=1)
    out = total[size:, size:] - total[:-size, size:] - total[size:, :-size] + total[:-size, :-size]
    out /= size * size
    return out


@kernel(lambda r, n, m: (r.integers(0, 256, size=(n, m)),), (6, 7), (80, 80))
def otsu(image):
    """The threshold that parts two classes best."""
    counts = np.bincount(image.ravel(), minlength=256).astype(float)
    counts /= counts.sum()
    best, threshold = -1.0, 0
    for t in range(1, 256):
        low, high = counts[:t].sum(), counts[t:].sum()
        if low == 0 or high == 0:
            continue
        mean_low = (np.arange(t) * counts[:t]).sum() / low
        mean_high = (np.arange(t, 256) * counts[t:]).sum() / high
        between = low * high * (mean_low - mean_high) ** 2
        if between > best:
            best, threshold = between, t
    return threshold, image > threshold


@kernel(lambda r, n, m: (r.uniform(size=(n, n, 3)), m), (4, 7), (80, 120))
def bilinear_resize(image, size):
    """An image of colours in another size, between the nearest four."""
    n = image.shape[0]
    at = np.linspace(0, n - 1, size)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, n - 1)
    part = at - low
    py, px = part[:, None, None], part[None, :, None]
    top = image[low][:, low] * (1 - px) + image[low][:, high] * px
    bottom = image[high][:, low] * (1 - px) + image[high][:, high] * px
    return top * (1 - py) + bottom * py


@kernel(lambda r, n, m: (r.uniform(0, 255, size=(n, m)),), (5, 6), (24, 24))
def floyd_steinberg(image):
    """Black and white by passing each pixel's error on to the next ones."""
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = 255.0 if old > 127 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < w:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    image[y + 1, x + 1] += error * 1 / 16
    return image
