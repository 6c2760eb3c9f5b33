"""Arguments of programs, from a text and a seed: the same for the same seed; views have memory around them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def array(text: str, seed: int) -> np.ndarray:
    """``"f8[3,2] step"``: dtype, shape, words.

    ``pos``: of one sign; ``unit``: 0.2 … 0.9; ``step``, ``neg``, ``F``, ``swap``: lying otherwise; ``ro``: read-only.
    """
    kind, *words = text.split()
    dtype, _, shape = kind.rpartition("[")
    sizes = tuple(int(size) for size in shape.rstrip("]").split(",") if size)
    a = numbers(np.dtype(dtype), sizes, np.random.default_rng([seed, zlib.crc32(text.encode())]), words)
    for word in words:
        a = laid_out(a, word)
    return a


def numbers(dtype: np.dtype, sizes: tuple[int, ...], rng: Any, words: list[str]) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(rng.random(sizes) < 0.5)
    if dtype.kind == "U":
        return np.asarray(rng.choice(["b", "abc", ""], sizes), dtype)
    if dtype.kind in "mM":
        return np.asarray(rng.integers(0, 50, sizes)).astype(dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" or "pos" in words else -6, 7, sizes), dtype)
    a = np.asarray(rng.uniform(0.2, 0.9, sizes) if "unit" in words else rng.standard_normal(sizes) * 2)
    if "pos" in words:
        a = np.abs(a) + 0.1
    return np.asarray(a + 1j * rng.standard_normal(sizes) if dtype.kind == "c" else a, dtype)


def laid_out(a: np.ndarray, word: str) -> np.ndarray:
    """The same numbers, lying otherwise."""
    if not a.ndim and word in ("step", "neg"):
        return a
    if word == "step":
        wide = np.full(tuple(2 * size + 1 for size in a.shape), 77, a.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in a.shape)]
        view[...] = a
        return view
    if word == "neg":
        return a[::-1].copy()[::-1]
    if word == "F":
        return np.asfortranarray(a)
    if word == "swap":
        return a.astype(a.dtype.newbyteorder())
    if word == "ro":
        a.flags.writeable = False
    return a


class Several(list):  # type: ignore[type-arg]
    """What a function made for several arguments."""


def make(arguments: tuple[Any, ...], seed: int) -> list[Any]:
    """The arguments of one call."""
    made: list[Any] = []
    for k, one in enumerate(arguments):
        if isinstance(one, str):
            made.append(array(one, seed + 100 * k))
        elif callable(one):
            result = one(seed)
            made += result if isinstance(result, Several) else [result]
        else:
            made.append(one)
    return made


def overlapping(seed: int) -> Several:
    """Two arrays that share memory."""
    base = array("f8[6]", seed)
    return Several([base[:4], base[2:]])


def twice(seed: int) -> Several:
    """One array, two arguments."""
    base = array("f8[4]", seed)
    return Several([base, base])
