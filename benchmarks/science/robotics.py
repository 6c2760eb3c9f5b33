"""Robots that reach, turn, drive and find their way."""

import heapq
import math

import numpy as np

from .registry import program


@program(lambda r, n: (np.array([1.0, 0.8, 0.6, 0.4]), r.uniform(-1.6, 1.6, (n, 2)), 1e-3), 12)
def inverse_kinematics(lengths, targets, tolerance):
    """Reach targets with a planar arm by cyclic coordinate descent."""
    angles = [0.1] * len(lengths)
    reached = 0
    sweeps = 0
    errors = []
    for target in targets:
        error = math.inf
        for _ in range(30):
            sweeps += 1
            for joint in range(len(lengths) - 1, -1, -1):
                x = y = heading = 0.0
                jx = jy = 0.0
                for k in range(len(lengths)):
                    if k == joint:
                        jx, jy = x, y
                    heading += angles[k]
                    x += lengths[k] * math.cos(heading)
                    y += lengths[k] * math.sin(heading)
                turn = math.atan2(target[1] - jy, target[0] - jx) - math.atan2(y - jy, x - jx)
                if turn > math.pi:
                    turn -= 2 * math.pi
                elif turn < -math.pi:
                    turn += 2 * math.pi
                angles[joint] += turn
            error = math.hypot(target[0] - x, target[1] - y)
            if error < tolerance:
                reached += 1
                break
        errors.append(error)
    return np.array(angles), np.array(errors), reached, sweeps


@program(lambda r, n: (r.normal(size=(n, 3)), r.normal(size=(n, 3)) * 0.1 + np.array([0, 0, 1.0]), 0.01), 300)
def attitude(gyro, accelerometer, dt):
    """Integrate a quaternion from gyroscopes and pull it towards gravity."""
    q = np.array([1.0, 0.0, 0.0, 0.0])
    bias = np.zeros(3)
    skipped = 0
    angles = np.zeros((len(gyro), 3))
    for i in range(len(gyro)):
        w = gyro[i] - bias
        norm = np.linalg.norm(accelerometer[i])
        if 0.8 < norm < 1.2:
            a = accelerometer[i] / norm
            up = np.array(
                [2 * (q[1] * q[3] - q[0] * q[2]), 2 * (q[0] * q[1] + q[2] * q[3]), 1 - 2 * (q[1] ** 2 + q[2] ** 2)]
            )
            error = np.cross(a, up)
            bias = bias - 0.01 * error * dt
            w = w + 0.5 * error
        else:
            skipped += 1
        wx, wy, wz = w
        dq = 0.5 * np.array(
            [
                -q[1] * wx - q[2] * wy - q[3] * wz,
                q[0] * wx + q[2] * wz - q[3] * wy,
                q[0] * wy - q[1] * wz + q[3] * wx,
                q[0] * wz + q[1] * wy - q[2] * wx,
            ]
        )
        q = q + dq * dt
        q = q / np.sqrt(np.sum(q * q))
        angles[i, 0] = math.atan2(2 * (q[0] * q[1] + q[2] * q[3]), 1 - 2 * (q[1] ** 2 + q[2] ** 2))
        s = 2 * (q[0] * q[2] - q[3] * q[1])
        angles[i, 1] = math.asin(max(-1.0, min(1.0, s)))
        angles[i, 2] = math.atan2(2 * (q[0] * q[3] + q[1] * q[2]), 1 - 2 * (q[2] ** 2 + q[3] ** 2))
    return q, angles, skipped


def slam_inputs(r, n):
    landmarks = r.uniform(-5, 5, (4, 2))
    return np.full(n, 0.1), r.normal(size=n) * 0.1, landmarks, r.normal(size=(n, 2)) * 0.05, 5.0


@program(slam_inputs, 80)
def ekf_slam(speed, turn, landmarks, noise, reach):
    """Locate a robot and map landmarks by an extended Kalman filter."""
    n_landmarks = len(landmarks)
    size = 3 + 2 * n_landmarks
    mu = np.zeros(size)
    sigma = np.eye(size) * 1e-3
    truth = np.zeros(3)
    seen = [False] * n_landmarks
    updates = 0
    for t in range(len(speed)):
        truth[0] += speed[t] * math.cos(truth[2])
        truth[1] += speed[t] * math.sin(truth[2])
        truth[2] += turn[t]
        g = np.eye(size)
        g[0, 2] = -speed[t] * math.sin(mu[2])
        g[1, 2] = speed[t] * math.cos(mu[2])
        mu[0] += speed[t] * math.cos(mu[2])
        mu[1] += speed[t] * math.sin(mu[2])
        mu[2] += turn[t]
        sigma = g @ sigma @ g.T
        sigma[:3, :3] += np.eye(3) * 1e-4
        j = t % n_landmarks
        dx, dy = landmarks[j] - truth[:2]
        distance = math.hypot(dx, dy) + noise[t, 0]
        if distance > reach:
            continue
        bearing = math.atan2(dy, dx) - truth[2] + noise[t, 1]
        at = 3 + 2 * j
        if not seen[j]:
            seen[j] = True
            mu[at] = mu[0] + distance * math.cos(bearing + mu[2])
            mu[at + 1] = mu[1] + distance * math.sin(bearing + mu[2])
            sigma[at, at] = sigma[at + 1, at + 1] = 1.0
            continue
        ex, ey = mu[at] - mu[0], mu[at + 1] - mu[1]
        q = ex * ex + ey * ey
        root = math.sqrt(q)
        h = np.zeros((2, size))
        h[0, 0], h[0, 1], h[0, at], h[0, at + 1] = -ex / root, -ey / root, ex / root, ey / root
        h[1, 0], h[1, 1], h[1, 2], h[1, at], h[1, at + 1] = ey / q, -ex / q, -1.0, -ey / q, ex / q
        residual = np.array([distance - root, bearing - math.atan2(ey, ex) + mu[2]])
        while residual[1] > math.pi:
            residual[1] -= 2 * math.pi
        while residual[1] < -math.pi:
            residual[1] += 2 * math.pi
        s = h @ sigma @ h.T + np.diag([0.01, 0.01])
        k = sigma @ h.T @ np.linalg.inv(s)
        mu = mu + k @ residual
        sigma = (np.eye(size) - k @ h) @ sigma
        updates += 1
    return mu, np.diag(sigma), truth, updates


def maze(r, n):
    walls = r.random((n, n)) < 0.25
    walls[0, 0] = walls[n - 1, n - 1] = False
    return walls, (0, 0), (n - 1, n - 1)


@program(maze, 30)
def a_star(walls, start, goal):
    """Find the shortest way over a grid with a heap, or none."""
    rows, cols = walls.shape
    cost = np.full(walls.shape, np.inf)
    cost[start] = 0.0
    parent = {}
    heap = [(0.0, start)]
    expanded = 0
    while heap:
        _, here = heapq.heappop(heap)
        expanded += 1
        if here == goal:
            path = [goal]
            while path[-1] != start:
                path.append(parent[path[-1]])
            return path[::-1], float(cost[goal]), expanded
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            i, j = here[0] + di, here[1] + dj
            if not (0 <= i < rows and 0 <= j < cols) or walls[i, j]:
                continue
            new = cost[here] + 1.0
            if new < cost[i, j]:
                cost[i, j] = new
                parent[(i, j)] = here
                heapq.heappush(heap, (new + abs(goal[0] - i) + abs(goal[1] - j), (i, j)))
    return None, -1.0, expanded


def particles(r, n):
    truth = np.cumsum(r.normal(size=15) * 0.5)
    return truth + r.normal(size=15) * 0.2, r.normal(size=(15, n)), r.random(15), r.normal(size=n)


@program(particles, 100)
def particle_filter(z, noise, offsets, x):
    """Follow a position with particles, resampled systematically when few of them count."""
    n = len(x)
    w = np.full(n, 1.0 / n)
    resampled = 0
    estimates = []
    for t in range(len(z)):
        total = 0.0
        for i in range(n):
            x[i] += 0.5 * noise[t, i]
            w[i] *= math.exp(-0.5 * ((z[t] - x[i]) / 0.3) ** 2) + 1e-12
            total += w[i]
        estimate = 0.0
        squares = 0.0
        for i in range(n):
            w[i] /= total
            estimate += w[i] * x[i]
            squares += w[i] ** 2
        estimates.append(estimate)
        if 1.0 / squares < n / 2:
            resampled += 1
            new = np.empty(n)
            u = offsets[t] / n
            c = w[0]
            i = 0
            for j in range(n):
                while u > c and i < n - 1:
                    i += 1
                    c += w[i]
                new[j] = x[i]
                u += 1.0 / n
            x[:] = new
            w[:] = 1.0 / n
    return np.array(estimates), resampled
