"""Two outcomes of a program held against each other: to the bit, types included where they mean something."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from typing import Any

import numpy as np
import pytest

import pyop


def runs_itself(f: Any, *arguments: Any, match: str) -> None:
    """Assert that a compiled function does what `f` does, by running it, and says so once with these words."""
    want = f(*copy.deepcopy(arguments))
    with pytest.warns(pyop.RetraceWarning, match=match):
        got = pyop.compile(f)(*copy.deepcopy(arguments))
    assert not differs(want, got), differs(want, got)


SCALARS = (bool, int, float, complex, np.generic)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal in dtype, shape and every bit; NaNs are equal to each other whatever their payload."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "O":
        pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
        return all(type(x) is type(y) and bool(np.all(x == y)) for x, y in pairs)
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind == "c":
        return same_bits(np.asarray(a.real), np.asarray(b.real)) and same_bits(np.asarray(a.imag), np.asarray(b.imag))
    if a.dtype.kind != "f":
        return False
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def shown(a: Any) -> str:
    return f"{a!r}"[:90].replace("\n", "")


def differs(want: Any, got: Any, where: str = "result") -> str:
    """What differs, or nothing. An array of no dimension may stand for a scalar, as docs/compiling.md says."""
    if isinstance(got, pyop.Value | pyop.Tensor):
        return f"{where}: a {type(got).__name__} came back"
    if isinstance(want, SCALARS) or type(want) is np.ndarray:
        if not (isinstance(got, SCALARS) or type(got) is np.ndarray):
            return f"{where}: {shown(want)} in NumPy, here {type(got).__name__}"
        if isinstance(want, SCALARS) and isinstance(got, SCALARS) and python_type(want) != python_type(got):
            return f"{where}: a {type(want).__name__} in NumPy, a {type(got).__name__} here"
        x, y = np.asarray(want), np.asarray(got)
        if same_bits(x, y):
            return ""
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"{where}: {x.dtype}{list(x.shape)} in NumPy, {y.dtype}{list(y.shape)} here"
        return f"{where}: {shown(want)} in NumPy, {shown(got)} here"
    if isinstance(want, str) and isinstance(got, np.ndarray) and got.dtype.kind == "U" and not got.ndim:
        return "" if got.item() == want else f"{where}: {want!r} in NumPy, {shown(got)} here"  # a plan's constant
    if type(want) is not type(got):
        return f"{where}: a {type(want).__name__} in NumPy, a {type(got).__name__} here"
    return parts_differ(want, got, where)


def python_type(a: Any) -> type | None:
    """An int of Python is not to come back as a float, but may as an integer of NumPy."""
    return type(a) if isinstance(a, int) and not isinstance(a, np.generic) else None


def parts_differ(want: Any, got: Any, where: str) -> str:
    """As `differs`, of two objects of one type."""
    if isinstance(want, tuple | list | deque):
        if len(want) != len(got):
            return f"{where}: {len(want)} items in NumPy, {len(got)} here"
        pairs = [(f"{where}[{k}]", x, y) for k, (x, y) in enumerate(zip(want, got, strict=True))]
    elif isinstance(want, dict):
        if list(want) != list(got):
            return f"{where}: keys {list(want)} in NumPy, {list(got)} here"
        pairs = [(f"{where}[{k!r}]", want[k], got[k]) for k in want]
    elif isinstance(want, np.ma.MaskedArray):
        pairs = [
            (f"{where}.mask", np.ma.getmaskarray(want), np.ma.getmaskarray(got)),
            (f"{where}.data", unmasked(want), unmasked(got)),
        ]
    elif isinstance(want, np.ndarray):
        pairs = [(where, np.asarray(want), np.asarray(got))]
    elif type(want).__module__.startswith(("pandas", "xarray")):
        return (
            ""
            if type(want) is type(got) and want.equals(got)
            else f"{where}: {shown(want)} in NumPy, {shown(got)} here"
        )
    elif dataclasses.is_dataclass(want) or hasattr(want, "__dict__"):
        pairs = [(f"{where}.{k}", vars(want)[k], vars(got).get(k)) for k in vars(want)]
    elif hasattr(want, "__slots__"):
        pairs = [(f"{where}.{k}", getattr(want, k), getattr(got, k)) for k in want.__slots__]
    elif isinstance(want, np.random.Generator):
        return differs(want.bit_generator.state, got.bit_generator.state, where)
    elif " at 0x" in repr(want):  # an iterator
        return ""
    else:
        return "" if want == got else f"{where}: {shown(want)} in NumPy, {shown(got)} here"
    return next(filter(None, (differs(x, y, at) for at, x, y in pairs)), "")


def unmasked(a: Any) -> np.ndarray:
    """The numbers of a masked array where they count."""
    mask = np.ma.getmaskarray(a)
    plain = np.asarray(a.data)
    return plain[~mask] if mask.shape == a.shape and mask.dtype == bool else plain


def arrays_in(tree: Any) -> list[np.ndarray]:
    """The arrays of a nest of containers and objects, in order."""
    if isinstance(tree, np.ndarray):
        return [tree]
    if isinstance(tree, tuple | list):
        return [a for item in tree for a in arrays_in(item)]
    if isinstance(tree, dict):
        return [a for item in tree.values() for a in arrays_in(item)]
    if type(tree).__module__.startswith(("pandas", "xarray")):
        return [np.asarray(tree)]
    if callable(tree) or isinstance(tree, type | np.generic):
        return []
    if hasattr(tree, "__dict__"):
        return arrays_in(vars(tree))
    return [a for name in getattr(tree, "__slots__", ()) for a in arrays_in(getattr(tree, name, None))]


def owner(a: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view: writes beside the view are seen there."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def kept(tree: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy that later writes do not reach; of objects nobody has heard of, themselves."""
    if isinstance(tree, np.ndarray):
        if type(tree) is np.memmap:
            return np.array(tree)
        try:
            return tree.copy(order="K")
        except ValueError:  # a masked array whose mask no longer fits
            return np.array(tree.data)
    if type(tree) in (tuple, list, deque):
        return type(tree)(kept(item) for item in tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(kept(item) for item in tree))
    if type(tree) is dict:
        return {key: kept(item) for key, item in tree.items()}
    if type(tree).__module__.startswith(("pandas", "xarray")):
        return tree.copy(deep=True)
    if type(tree).__module__.startswith("tests.silence"):
        copy = object.__new__(type(tree))
        for name in [*getattr(tree, "__dict__", ()), *getattr(tree, "__slots__", ())]:
            object.__setattr__(copy, name, kept(getattr(tree, name)))
        return copy
    return tree


def state_of(arguments: list[Any]) -> list[Any]:
    """The arguments as a caller finds them after a call: themselves, and the memory around their arrays."""
    layouts = [(a.shape, a.strides, a.dtype.str) for a in arrays_in(arguments)]
    return [kept(arguments), [kept(np.asarray(owner(a))) for a in arrays_in(arguments)], layouts]


def sharing(result: Any, arguments: list[Any]) -> list[tuple[str, str]]:
    """Which arrays of results and arguments share memory, by their places."""
    flat = [*placed(result, "result"), *placed(arguments, "arguments")]
    pairs = [(x, y) for k, x in enumerate(flat) for y in flat[:k]]
    return [(one, other) for (one, x), (other, y) in pairs if writable(x, y) and np.shares_memory(x, y)]


def writable(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether one of them can be written, so that it matters what they share."""
    return x.flags.writeable or y.flags.writeable


def placed(tree: Any, where: str) -> list[tuple[str, np.ndarray]]:
    """The arrays of a nest, with their places."""
    if isinstance(tree, tuple | list | dict):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [pair for k, item in items for pair in placed(item, f"{where}[{k}]")]
    return [(f"{where}.{k}", a) if k else (where, a) for k, a in enumerate(arrays_in(tree))]


def aliased(want: list[tuple[str, str]], got: list[tuple[str, str]]) -> str:
    """What shares memory here and not in NumPy, or the other way round with an argument."""
    more = [pair for pair in got if pair not in want]
    less = [pair for pair in want if pair not in got and pair[1].startswith("arguments") != pair[0].startswith("arg")]
    return f"{more} share memory here and not in NumPy, {less} in NumPy and not here" if more or less else ""


def public_type(error: BaseException) -> type:
    """The nearest class of an exception that is public."""
    return next(kind for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
