"""Load the data of the demonstration: real handwritten digits, shipped inside scikit-learn's wheel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from .pipeline import PLAIN, Array, features

SOURCE = (
    "Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, 1998),\n"
    "UCI Machine Learning Repository, CC BY 4.0; the copy in scikit-learn (load_digits)"
)


@dataclass(frozen=True)
class Digits:
    """Hold images to read, the digits they show, and examples of other images."""

    images: Array
    truth: Array
    examples: Array
    learnt_from: int


def load(records: int | None = None) -> Digits:
    """Learn the class means from every second image; keep the others for reading.

    Parameters
    ----------
    records
        Keep only that many images for reading.
    """
    bunch: Any = load_digits()
    learnt = np.array([features(image, PLAIN) for image in bunch.images[::2]])
    classes = bunch.target[::2]
    examples = np.array([learnt[classes == digit].mean(axis=0) for digit in range(10)])
    images = np.ascontiguousarray(bunch.images[1::2][:records])
    return Digits(images, bunch.target[1::2][:records], examples, len(learnt))
