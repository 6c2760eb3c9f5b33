"""Images, pixel by pixel."""

import math

import numpy as np

from .registry import program


@program(lambda r, n: ((r.random((n, n)) < 0.35).astype(int), (n // 2, n // 2), 7), 60)
def flood_fill(image, seed, colour):
    """Fill the region of a pixel with a colour, in place, and count its pixels."""
    rows, cols = image.shape
    old = image[seed]
    if old == colour:
        return 0
    stack = [seed]
    filled = 0
    while stack:
        i, j = stack.pop()
        if i < 0 or i >= rows or j < 0 or j >= cols:
            continue
        if image[i, j] != old:
            continue
        image[i, j] = colour
        filled += 1
        stack.append((i + 1, j))
        stack.append((i - 1, j))
        stack.append((i, j + 1))
        stack.append((i, j - 1))
    return filled


def find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@program(lambda r, n: (r.random((n, n)) < 0.5,), 50)
def connected_components(mask):
    """Label what hangs together, in two passes with a union of labels."""
    labels = np.zeros(mask.shape, dtype=np.int32)
    parent = [0]
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                continue
            up = labels[i - 1, j] if i > 0 else 0
            left = labels[i, j - 1] if j > 0 else 0
            if up == 0 and left == 0:
                parent.append(len(parent))
                labels[i, j] = len(parent) - 1
            elif up != 0 and left != 0:
                a, b = find(parent, up), find(parent, left)
                labels[i, j] = min(a, b)
                if a < b:
                    parent[b] = a
                elif b < a:
                    parent[a] = b
            else:
                labels[i, j] = max(up, left)
    names = {}
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if labels[i, j]:
                root = int(find(parent, labels[i, j]))
                if root not in names:
                    names[root] = len(names) + 1
                labels[i, j] = names[root]
    return labels, len(names)


def greys(r, n):
    bright = r.random((n, n)) < 0.3
    return (np.clip(np.where(bright, r.normal(180, 20, (n, n)), r.normal(80, 25, (n, n))), 0, 255).astype(np.uint8),)


@program(greys, 70)
def otsu_threshold(image):
    """Find the grey value that parts an image best in two."""
    counts = [0] * 256
    for v in image.ravel():
        counts[v] += 1
    total = image.size
    whole = 0.0
    for k in range(256):
        whole += k * counts[k]
    weight = 0
    below = 0.0
    best = -1.0
    threshold = 0
    for k in range(256):
        weight += counts[k]
        if weight == 0:
            continue
        rest = total - weight
        if rest == 0:
            break
        below += k * counts[k]
        m0 = below / weight
        m1 = (whole - below) / rest
        between = weight * rest * (m0 - m1) ** 2
        if between > best:
            best = between
            threshold = k
    return threshold, best


@program(lambda r, n: (np.zeros((120, 120), dtype=np.uint8), r.integers(0, 120, (n, 4))), 30)
def bresenham_lines(canvas, segments):
    """Draw lines into an image."""
    for x0, y0, x1, y1 in segments:
        dx = abs(x1 - x0)
        dy = -abs(y1 - y0)
        sx = 1 if x0 < x1 else -1
        sy = 1 if y0 < y1 else -1
        err = dx + dy
        while True:
            canvas[y0, x0] += 1
            if x0 == x1 and y0 == y1:
                break
            e2 = 2 * err
            if e2 >= dy:
                err += dy
                x0 += sx
            if e2 <= dx:
                err += dx
                y0 += sy
    return canvas


def distance_to_scene(x, y, z):
    ball = math.sqrt(x * x + y * y + (z - 4.0) ** 2) - 1.0
    floor = y + 1.2
    return ball if ball < floor else floor


@program(lambda r, n: (n, float(r.uniform(-0.5, 0.5)), 60), 14)
def ray_march(size, tilt, most):
    """Draw a ball over a floor by marching rays along signed distances."""
    image = np.zeros((size, size))
    steps = 0
    for i in range(size):
        for j in range(size):
            dx = (j + 0.5) / size - 0.5
            dy = 0.5 - (i + 0.5) / size + 0.1 * tilt
            norm = math.sqrt(dx * dx + dy * dy + 1.0)
            dx, dy, dz = dx / norm, dy / norm, 1.0 / norm
            t = 0.0
            hit = False
            for _ in range(most):
                steps += 1
                d = distance_to_scene(t * dx, t * dy, t * dz)
                if d < 1e-3:
                    hit = True
                    break
                t += d
                if t > 20.0:
                    break
            if hit:
                image[i, j] = 1.0 / (1.0 + 0.1 * t * t)
    return image, steps


@program(lambda r, n: (r.random((n, n)) * 255.0,), 50)
def floyd_steinberg(image):
    """Dither an image to black and white, handing errors on to the neighbours."""
    work = image.copy()
    rows, cols = work.shape
    white = 0
    for y in range(rows):
        for x in range(cols):
            old = work[y, x]
            new = 255.0 if old > 127.5 else 0.0
            if new > 0:
                white += 1
            work[y, x] = new
            err = old - new
            if x + 1 < cols:
                work[y, x + 1] += err * 7 / 16
            if y + 1 < rows:
                if x > 0:
                    work[y + 1, x - 1] += err * 3 / 16
                work[y + 1, x] += err * 5 / 16
                if x + 1 < cols:
                    work[y + 1, x + 1] += err * 1 / 16
    return work, white / (rows * cols)
