"""Read handwritten digits by a pipeline: Otsu's threshold, connected components, deskewing, nearest class.

Four of its stages are loops that NumPy cannot express; the rest is NumPy. Everything is written once, as plain
functions on arrays. `OPS` holds the same stages declared as ops. So `recognise` runs as plain Python with `PLAIN`, as
checked eager calls with `OPS`, and as a graph when it is traced with `OPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import pyop

HOLE_WEIGHT = 5.0  # what one hole counts, in grey levels of one pixel

Array = np.ndarray[Any, Any]


def otsu(grey: Array) -> np.float64:
    """Return the level that parts an image into two classes with the largest variance between them (Otsu, 1979)."""
    levels, counts = np.unique(grey, return_counts=True)
    total, mass = int(counts.sum()), float((levels * counts).sum())
    below, mass_below, best, threshold = 0, 0.0, -1.0, float(levels[0])
    for level, count in zip(levels[:-1].tolist(), counts[:-1].tolist(), strict=True):
        below += count
        mass_below += level * count
        above = total - below
        between = below * above * (mass_below / below - (mass - mass_below) / above) ** 2
        if between > best:
            best, threshold = between, level
    return np.float64(threshold)


def components(mask: Array, *, diagonal: bool = False) -> Array:
    """Label the connected regions of a mask by 1, 2, …, and all outside the mask by 0."""
    height, width = mask.shape
    inside = mask.tolist()
    labels = [[0] * width for _ in range(height)]
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    if diagonal:
        steps += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    count = 0
    for top in range(height):
        for left in range(width):
            if not inside[top][left] or labels[top][left]:
                continue
            count += 1
            labels[top][left] = count
            front = [(top, left)]
            while front:
                i, j = front.pop()
                for di, dj in steps:
                    y, x = i + di, j + dj
                    if 0 <= y < height and 0 <= x < width and inside[y][x] and not labels[y][x]:
                        labels[y][x] = count
                        front.append((y, x))
    return np.array(labels, np.int64)


def shear(image: Array, centre: Array, slant: Array) -> Array:
    """Shift every row in proportion to its distance from `centre`, so that a stroke of this slant stands upright."""
    middle, slope = float(centre), float(slant)
    columns = np.arange(image.shape[1], dtype=np.float64)
    out = np.empty_like(image)
    for i, row in enumerate(image):
        out[i] = np.interp(columns + slope * (i - middle), columns, row, left=0.0, right=0.0)
    return out


def to_unit_length(vectors: Array) -> Array:
    """Divide every vector of the last axis by its length, a zero vector by one."""
    lengths = np.sqrt(np.sum(vectors * vectors, axis=-1, keepdims=True))
    return vectors / np.where(lengths == 0.0, 1.0, lengths)


class Stages(NamedTuple):
    """Hold the stages that are functions of our own, in one of their forms."""

    otsu: Callable[..., Any]
    components: Callable[..., Any]
    shear: Callable[..., Any]
    to_unit_length: Callable[..., Any]


SPECS = {
    "otsu": "float64[h, w] -> float64[]",
    "components": "bool[h, w] -> int64[h, w]",
    "shear": "float64[h, w], float64[], float64[] -> float64[h, w]",
    "to_unit_length": "float64[*batch, k] -> float64[*batch, k]",
}
PLAIN = Stages(otsu, components, shear, to_unit_length)
OPS = Stages(**{name: pyop.op(SPECS[name])(function) for name, function in PLAIN._asdict().items()})


@cache
def with_kernels() -> Stages:
    """Return the ops, with the slowest of them as compiled code: `src/_demo_kernels.pyx`."""
    from ._kernels import components, components_diagonal

    sides, corners = pyop.native_op(components), pyop.native_op(components_diagonal)
    return OPS._replace(components=lambda mask, *, diagonal=False: (corners if diagonal else sides)(mask))


class Moments(NamedTuple):
    """Hold where the ink of an image lies and how it is spread."""

    centre: Any
    height: Any
    width: Any
    slant: Any


def moments(image: Any) -> Moments:
    """Centre (its row), variances and slant of the ink."""
    rows, columns = np.indices(image.shape, dtype=np.float64)
    mass = np.sum(image)
    row, column = np.sum(rows * image) / mass, np.sum(columns * image) / mass
    height = np.sum((rows - row) ** 2 * image) / mass
    width = np.sum((columns - column) ** 2 * image) / mass
    covariance = np.sum((rows - row) * (columns - column) * image) / mass
    return Moments(row, height, width, covariance / height)


def upright(image: Any, stages: Stages) -> Any:
    """Return the image without its slant."""
    ink = moments(image)
    return stages.shear(image, ink.centre, ink.slant)


def topology(image: Any, stages: Stages) -> tuple[Any, Any]:
    """Return the number of holes that the ink encloses, and the number of separate strokes."""
    ink = image > stages.otsu(image)
    paper = np.pad(~ink, 1, constant_values=True)
    holes = np.max(stages.components(paper)) - 1  # the sheet around the digit is no hole
    return holes, np.max(stages.components(ink, diagonal=True))


def features(image: Any, stages: Stages = OPS) -> Any:
    """Return the features for the classifier: the upright image and the number of holes."""
    holes, _ = topology(image, stages)
    return np.append(np.ravel(upright(image, stages)), HOLE_WEIGHT * holes)


def recognise(image: Any, examples: Array, stages: Stages = OPS) -> dict[str, Any]:
    """Read one digit.

    Parameters
    ----------
    image
        Grey levels 0 to 16, one image.
    examples
        The mean features of every class, one row each.
    stages
        `PLAIN` or `OPS`.

    Returns
    -------
    dict
        The digit; how many holes and strokes it has; how far it leans; the similarity to every class.
    """
    holes, strokes = topology(image, stages)
    likeness = stages.to_unit_length(examples) @ stages.to_unit_length(features(image, stages))
    return {
        "digit": np.argmax(likeness),
        "holes": holes,
        "strokes": strokes,
        "lean": np.arctan(moments(image).slant),
        "likeness": likeness,
    }
