"""Populations, animals and fires."""

import math

import numpy as np

from .registry import program


def growth(prey, predator, a, b, c, d):
    return a * prey - b * prey * predator, c * prey * predator - d * predator


@program(lambda r, n: (float(r.uniform(5, 15)), 5.0, n, 0.01, 12.0, 3.0), 600)
def harvested_prey(prey, predator, steps, dt, quota, reserve):
    """Integrate prey and predators by Runge and Kutta, with a harvest that stops below a reserve."""
    a, b, c, d = 1.1, 0.4, 0.1, 0.4
    caught = 0.0
    closed = 0
    extinct = False
    out = np.zeros((steps, 2))
    for k in range(steps):
        k1x, k1y = growth(prey, predator, a, b, c, d)
        k2x, k2y = growth(prey + dt / 2 * k1x, predator + dt / 2 * k1y, a, b, c, d)
        k3x, k3y = growth(prey + dt / 2 * k2x, predator + dt / 2 * k2y, a, b, c, d)
        k4x, k4y = growth(prey + dt * k3x, predator + dt * k3y, a, b, c, d)
        prey += dt / 6 * (k1x + 2 * k2x + 2 * k3x + k4x)
        predator += dt / 6 * (k1y + 2 * k2y + 2 * k3y + k4y)
        if k % 10 == 0:
            if prey > reserve:
                harvest = min(0.01 * quota, prey - reserve)
                prey -= harvest
                caught += harvest
            else:
                closed += 1
        if predator < 1e-3:
            extinct = True
            break
        out[k] = [prey, predator]
    return out, caught, closed, extinct


@program(lambda r, n: (r.normal(size=n), r.exponential(1.0, n), 20.0, 0.5), 1200)
def foraging_walk(turns, steps, size, memory):
    """Walk an animal in a fenced square: it turns back at fences and rests when it is tired."""
    x = y = size / 2
    heading = 0.0
    energy = 10.0
    rests = bounces = 0
    farthest = 0.0
    path = np.empty((len(turns), 2))
    visited = set()
    for i in range(len(turns)):
        if energy < 2.0:
            energy += 3.0
            rests += 1
            path[i] = x, y
            continue
        heading = memory * heading + turns[i]
        x += steps[i] * math.cos(heading)
        y += steps[i] * math.sin(heading)
        if x < 0 or x > size:
            x = -x if x < 0 else 2 * size - x
            heading = math.pi - heading
            bounces += 1
        if y < 0 or y > size:
            y = -y if y < 0 else 2 * size - y
            heading = -heading
            bounces += 1
        energy -= 0.5 * steps[i]
        visited.add((int(x), int(y)))
        r = math.hypot(x - size / 2, y - size / 2)
        if r > farthest:
            farthest = r
        path[i, 0] = x
        path[i, 1] = y
    return path, rests, bounces, farthest, len(visited)


@program(lambda r, n: ((r.random((n, n)) < 0.75).astype(np.int8), r.random((n, n)), 60), 16)
def forest_fire(forest, chance, longest):
    """Burn a forest from its left edge: 0 ground, 1 tree, 2 fire, 3 ash."""
    n, m = forest.shape
    forest[:, 0] = np.where(forest[:, 0] == 1, 2, forest[:, 0])
    burnt = 0
    for step in range(longest):
        new = forest.copy()
        burning = 0
        for i in range(n):
            for j in range(m):
                if forest[i, j] == 2:
                    new[i, j] = 3
                    burnt += 1
                elif forest[i, j] == 1:
                    fires = 0
                    if i > 0 and forest[i - 1, j] == 2:
                        fires += 1
                    if i < n - 1 and forest[i + 1, j] == 2:
                        fires += 1
                    if j > 0 and forest[i, j - 1] == 2:
                        fires += 1
                    if j < m - 1 and forest[i, j + 1] == 2:
                        fires += 1
                    if fires and chance[i, j] > 0.3**fires:
                        new[i, j] = 2
                        burning += 1
        forest[...] = new
        if burning == 0:
            break
    return step, burnt, bool(np.any(forest[:, -1] == 3))


class Population:
    """Stages of life under a matrix that changes with the density."""

    def __init__(self, stages, matrix):
        self.n = stages
        self.matrix = matrix
        self.years = 0
        self.crashes = 0

    def year(self, catastrophe, capacity):
        matrix = self.matrix.copy()
        total = self.n.sum()
        matrix[0] *= 1.0 / (1.0 + total / capacity)
        self.n = matrix @ self.n
        if catastrophe:
            self.n = self.n * np.array([0.2, 0.5, 0.7])
            self.crashes += 1
        self.years += 1
        return self.n.sum()


@program(lambda r, n: (np.array([30.0, 20.0, 10.0]), r.random(n), 0.05, 200.0), 400)
def population_viability(start, chance, p, capacity):
    """Project a staged population with catastrophes until it falls below two."""
    animals = Population(start, np.array([[0.0, 1.6, 2.4], [0.4, 0.1, 0.0], [0.0, 0.5, 0.8]]))
    sizes = []
    low = math.inf
    for u in chance:
        size = animals.year(u < p, capacity)
        sizes.append(size)
        if size < low:
            low = size
        if size < 2.0:
            return np.array(sizes), animals.n, "extinct", low, animals.years
    return np.array(sizes), animals.n, "alive", low, animals.crashes


def patches(r, n):
    return r.random((n, 2)), r.uniform(0.2, 2.0, n), r.random((25, n)), r.random((25, n)), 4.0


@program(patches, 22)
def metapopulation(places, areas, u_extinct, u_colonise, alpha):
    """Let patches go extinct and be settled from others, year by year."""
    n = len(areas)
    occupied = np.ones(n, dtype=bool)
    occupancy = []
    turnover = 0
    for year in range(len(u_extinct)):
        new = occupied.copy()
        for i in range(n):
            if occupied[i]:
                if u_extinct[year, i] < min(1.0, 0.1 / areas[i]):
                    new[i] = False
                    turnover += 1
            else:
                connectivity = 0.0
                for j in range(n):
                    if j == i or not occupied[j]:
                        continue
                    d = math.sqrt((places[i, 0] - places[j, 0]) ** 2 + (places[i, 1] - places[j, 1]) ** 2)
                    connectivity += math.exp(-alpha * d) * areas[j]
                if u_colonise[year, i] < connectivity**2 / (connectivity**2 + 1.0):
                    new[i] = True
                    turnover += 1
        occupied = new
        count = int(np.sum(occupied))
        occupancy.append(count / n)
        if count == 0:
            break
    return occupancy, occupied, turnover
