"""Inputs of random programs: any dtype, layout and content, some of them windows of the same memory."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "g", "F", "D", "G", "q", "Q"]
WEIGHTS = [4, 2, 3, 2, 2, 4, 2, 6, 3, 4, 10, 20, 2, 3, 5, 1, 1, 1]
LAYOUTS = ["C", "F", "reversed", "strided", "broadcast", "unaligned", "gap"]
LAYOUT_WEIGHTS = [12, 3, 2, 2, 2, 1, 2]


def _numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Numbers of all kinds. Seeds divisible by three give everyday ones, the others the edges of the dtype too."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    wild = seed % 3 != 0
    if kind == "b":
        return rng.random(count) < 0.5
    if kind in "iu":
        info = np.iinfo(dtype)
        plain = rng.integers(0 if kind == "u" else -6, 7, count).astype(dtype)
        edges = np.array([info.min, info.max, info.max // 2, info.min + 1, 0, 1], dtype)
    else:
        parts = np.dtype(dtype).newbyteorder("=")
        real = np.empty(0, parts).real.dtype
        small = np.finfo(real)
        plain = np.round(rng.normal(0, 3, count), 2).astype(dtype)
        if kind == "c":
            plain = plain + (np.round(rng.normal(0, 3, count), 2) * 1j).astype(dtype)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
        edges = np.array([*special, small.max, -small.max, small.tiny, small.smallest_subnormal], real).astype(dtype)
        if kind == "c":
            edges = np.concatenate([edges, edges * dtype_scalar(dtype, 1j)], dtype=dtype)
    if not wild:
        return plain
    return np.where(rng.random(count) < 0.3, edges[rng.integers(0, len(edges), count)], plain)


def dtype_scalar(dtype: str, value: Any) -> Any:
    return np.dtype(dtype).type(value)


@lru_cache(maxsize=512)
def _cycle(dtype: str, seed: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(_numbers(dtype, 97, seed), dtype=dtype)


def numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Numbers of a dtype; more of them begin with the same ones."""
    return np.resize(_cycle(dtype, seed), count)


@dataclass(frozen=True)
class Array:
    """An input, or a constant, of a program.

    Arrays of the same dtype and `data` are windows of one buffer, `start` elements into it.
    """

    dtype: str
    shape: tuple[int, ...]
    layout: str = "C"
    data: int = 0
    start: int = 0
    constant: bool = False

    @property
    def buffer(self) -> str:
        return f"b_{_name(self.dtype)}{self.data}"

    def _sizes(self) -> tuple[int, ...]:
        """The sizes that the buffer is cut into, before the layout makes `shape` of them."""
        if self.layout in ("strided", "gap") and self.shape:
            return (*self.shape[:-1], self.shape[-1] * 2)
        if self.layout == "broadcast" and self.shape:
            return (*self.shape[:-1], 1) if self.data % 2 else (1, *self.shape[1:])
        return self.shape[::-1] if self.layout == "F" else self.shape

    def needs(self) -> int:
        """How many elements the buffer must have."""
        return self.start + int(np.prod(self._sizes(), dtype=int))

    def text(self) -> str:
        """The expression that makes it from its buffer."""
        sizes = self._sizes()
        cut = f"{self.buffer}[{self.start}:{self.needs()}]"
        if self.layout == "unaligned":
            cut = f"unaligned({cut})"
        text = cut if len(sizes) == 1 else f"{cut}.reshape({sizes})"
        match self.layout:
            case "F":
                text += ".T"
            case "reversed" if self.shape:
                text += f"[{', '.join(['::-1'] * len(self.shape))}]"
            case "strided" if self.shape:
                text += "[..., ::2]"
            case "gap" if self.shape:
                text += f"[..., :{self.shape[-1]}]"
            case "broadcast" if self.shape:
                text = f"np.broadcast_to({text}, {self.shape})"
        return text


def _name(dtype: str) -> str:
    return {"?": "bool"}.get(dtype, dtype)


def unaligned(a: np.ndarray) -> np.ndarray:
    """The same numbers, one byte off the alignment of their dtype."""
    moved = np.empty(a.nbytes + 1, np.uint8)[1:].view(a.dtype)
    moved[:] = a
    return moved


@lru_cache(maxsize=4096)
def _code(text: str) -> Any:
    return compile(text, "<array>", "eval")


def make(arrays: list[Array]) -> list[np.ndarray]:
    """The arrays, equal ones being the same object."""
    counts = _counts(arrays)
    names: dict[str, Any] = {"np": np, "unaligned": unaligned}
    for (dtype, data), count in counts.items():
        names[f"b_{_name(dtype)}{data}"] = numbers(dtype, count, data)
    made: dict[Array, np.ndarray] = {}
    for array in arrays:
        if array not in made:
            made[array] = eval(_code(array.text()), names)
    return [made[array] for array in arrays]


def source(arrays: list[Array], names: list[str]) -> list[str]:
    """Lines of Python that make the arrays."""
    lines = []
    for (dtype, data), count in _counts(arrays).items():
        lines.append(f"b_{_name(dtype)}{data} = {_literal(dtype, count, data)}")
    first: dict[Array, str] = {}
    for array, name in zip(arrays, names, strict=True):
        lines.append(f"{name} = {first.setdefault(array, array.text() if array not in first else '')}")
        first[array] = name
    return lines


def _literal(dtype: str, count: int, data: int) -> str:
    if count > 40 or dtype in "gG":
        return f"numbers({dtype!r}, {count}, {data})"
    items = numbers(dtype, count, data).tolist()
    texts = [f"complex({x.real!r}, {x.imag!r})" if isinstance(x, complex) else repr(x) for x in items]
    text = ", ".join(texts).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array([{text}], {dtype!r})"


def _counts(arrays: list[Array]) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = {}
    for array in arrays:
        key = (array.dtype, array.data)
        counts[key] = max(counts.get(key, 0), array.needs())
    return counts


def random_shape(r: random.Random) -> tuple[int, ...]:
    if r.random() < 0.04:
        return (r.choice([40, 255, 256, 257, 1000, 1024, 1025, 5000]),)
    rank = r.choices([0, 1, 2, 3, 4], [2, 8, 6, 3, 1])[0]
    return tuple(r.choices([0, 1, 2, 3, 4, 5, 8], [1, 4, 5, 8, 4, 2, 1])[0] for _ in range(rank))


def long_shape(r: random.Random) -> tuple[int, ...]:
    """Around the lengths at which blocks, vectors and pairwise sums change over."""
    long = r.choice([7, 8, 9, 16, 63, 64, 65, 127, 128, 129, 136, 255, 256, 257, 512, 513, 1000, 1023, 1025, 2049])
    match r.randrange(6):
        case 0:
            return (r.choice([2, 3, 5]), long)
        case 1:
            return (long, r.choice([1, 2, 3, 5]))
        case 2:
            return (2, r.choice([3, 4]), long)
        case 3:
            return (r.choice([4096, 4097, 8191, 8192, 8193, 10_000, 16_384]),)
        case _:
            return (long,)


def random_arrays(r: random.Random, shape: tuple[int, ...]) -> list[Array]:
    """One to four inputs and now and then a constant, often of shapes that broadcast and of one dtype."""
    common = r.choices(DTYPES, WEIGHTS)[0]
    arrays: list[Array] = []
    for k in range(r.choice([1, 2, 2, 3, 3, 4])):
        if arrays and r.random() < 0.1:
            arrays.append(r.choice(arrays))  # the same array twice
            continue
        if arrays and r.random() < 0.1:  # overlapping windows of one buffer
            other = r.choice(arrays)
            arrays.append(Array(other.dtype, other.shape, r.choice([other.layout, "C"]), other.data, r.randrange(3)))
            continue
        dtype = common if r.random() < 0.6 else r.choices(DTYPES, WEIGHTS)[0]
        sizes = _related(r, shape) if r.random() < 0.8 else random_shape(r)
        layout = r.choices(LAYOUTS, LAYOUT_WEIGHTS)[0]
        constant = k > 0 and r.random() < 0.12
        if constant and layout != "F":
            layout = "C"  # the graph keeps a copy, without gaps
        arrays.append(Array(dtype, sizes, layout, r.randrange(30), r.randrange(2), constant))
    return arrays


def _related(r: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape itself, or one that broadcasts with it."""
    if r.random() < 0.6:
        return shape
    sizes = tuple(1 if r.random() < 0.3 else size for size in shape)
    return sizes[r.randrange(len(sizes) + 1) :] if r.random() < 0.5 else sizes
