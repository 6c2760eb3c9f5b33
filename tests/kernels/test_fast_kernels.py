"""The functions of precision="fast": their error in units of the last place, special values and flags.

``pytest -m campaign`` sweeps densely; ``python tests/kernels/test_fast_kernels.py`` prints the table of
docs/performance.md.
"""

from __future__ import annotations

import platform
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

ctests = pytest.importorskip(
    "pyop._ctests",
    reason="the C++ tests are not built: install with -Ccmake.define.PYOP_TESTS=ON",
    exc_type=ModuleNotFoundError,
)

LEVELS = ctests.kernel_levels()
ELEMENTS = {"float32": 9, "float64": 10}  # pyop::Element
LIMIT = 4.0
NAMES = [
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "erf", "erfc", "power"),
]
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="the reference is computed in 80 bits"
)


def find(level: str, name: str, dtype: np.dtype) -> int:
    return ctests.kernel_find(level, "fast", ELEMENTS[dtype.name], 0, name)


def found(level: str, name: str, dtype: str) -> int:
    kernel = find(level, name, np.dtype(dtype))
    if not kernel:
        pytest.skip("left to NumPy here")
    return kernel


def run(kernel: int, *operands: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
    result = np.empty_like(operands[0])
    flags = ctests.kernel_run(kernel, result.size, (*operands, result))
    return result, flags


def reference(name: str, *operands: np.ndarray) -> np.ndarray:
    """In 80 bits."""
    if name in ("erf", "erfc"):
        result = np.empty(operands[0].size, np.longdouble)
        ctests.long_double_erf(name, result.size, (operands[0].astype(np.float64), result))
        return result
    with np.errstate(all="ignore"):
        return getattr(np, name)(*(x.astype(np.longdouble) for x in operands))


def any_bits(rng: np.random.Generator, dtype: np.dtype, n: int) -> np.ndarray:
    """Finite numbers of every exponent and sign."""
    bits = np.dtype(f"u{dtype.itemsize}")
    finite = rng.integers(0, np.array(np.finfo(dtype).max).view(bits), n, dtype=bits, endpoint=True)
    return (finite | rng.integers(0, 2, n).astype(bits) << bits.type(8 * dtype.itemsize - 1)).view(dtype)


def sweeps(name: str, dtype: np.dtype, n: int, seed: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Arguments over the whole range of a function, `n` of each kind."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    wide = 705 if dtype == np.float64 else 87
    near_one = 1 + rng.normal(size=n) * 10.0 ** rng.uniform(-15 if dtype == np.float64 else -7, -1, n)
    if name == "power":
        yield np.abs(any_bits(rng, dtype, n)), rng.normal(0, 3, n).astype(dtype)
        yield rng.uniform(0, 10, n).astype(dtype), rng.uniform(-20, 20, n).astype(dtype)
        yield near_one.astype(dtype), (rng.normal(size=n) * 10.0 ** rng.uniform(0, 7, n)).astype(dtype)
        yield rng.uniform(-10, 0, n).astype(dtype), rng.integers(-5, 6, n).astype(dtype)
        return
    for x in (
        any_bits(rng, dtype, n),
        rng.uniform(-1, 1, n),
        rng.uniform(-10, 10, n),
        rng.uniform(-wide, wide, n),
        near_one,
        rng.normal(size=n) * 10.0 ** rng.uniform(-30, 0, n),
    ):
        yield (x.astype(dtype),)
    if name in ("sin", "cos", "tan"):
        for reach in (1e3, 1e6, 1e9, 1e15):
            yield (rng.uniform(-reach, reach, n).astype(dtype),)
            # as close to the zeros as numbers are
            yield ((rng.integers(-int(reach), int(reach), n) * (np.longdouble(np.pi) / 2)).astype(dtype),)


def worst(kernel: int, name: str, operands: tuple[np.ndarray, ...]) -> tuple[float, Any]:
    """The largest error, in spacings of the number nearest to the true result, and where it is."""
    got, _ = run(kernel, *operands)
    true = reference(name, *operands)
    with np.errstate(all="ignore"):
        nearest = true.astype(got.dtype)
        error = np.abs(got.astype(np.longdouble) - true) / np.spacing(np.abs(nearest))
        special = ~np.isfinite(nearest) | ~np.isfinite(got)
        error[special] = np.where((got == nearest) | (np.isnan(got) & np.isnan(nearest)), 0, np.inf)[special]
    at = int(np.argmax(error))
    return float(error[at]), [x[at] for x in operands]


@needs_long_double
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", NAMES)
def test_error(level: str, name: str, dtype: str) -> None:
    kernel = found(level, name, dtype)
    for operands in sweeps(name, np.dtype(dtype), 2000):
        error, at = worst(kernel, name, operands)
        assert error <= LIMIT, f"{name} of {at} is {error} units off"


@pytest.mark.campaign
@needs_long_double
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", NAMES)
def test_error_densely(level: str, name: str, dtype: str) -> None:
    kernel = found(level, name, dtype)
    for seed in range(4):
        for operands in sweeps(name, np.dtype(dtype), 300_000, seed + 1):
            error, at = worst(kernel, name, operands)
            assert error <= LIMIT, f"{name} of {at} is {error} units off"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc" or "v3" not in LEVELS, reason="libmvec is glibc's, for x86-64")
def test_there_is_a_fast_sine() -> None:
    # Since glibc 2.22: a build for any glibc must find these.
    for name in ("sin", "cos", "exp"):
        assert find(LEVELS[-1], name, np.dtype("f8"))
    for name in ("add", "nothing", ""):
        assert not find(LEVELS[-1], name, np.dtype("f8"))


def special(dtype: np.dtype) -> np.ndarray:
    info = np.finfo(dtype)
    there = [0.0, info.smallest_subnormal, info.tiny / 2, info.tiny, info.max, np.inf, np.nan, 1.0, 1.5, 2.0, 1e3, 1e30]
    x = np.array(there, dtype)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_numpys(level: str, name: str, dtype: str) -> None:
    kernel = found(level, name, dtype)
    if name in ("erf", "erfc"):
        x = special(np.dtype(dtype))
        got, _ = run(kernel, x)
        true = reference(name, x).astype(dtype)
        assert np.array_equal(np.isnan(got), np.isnan(true))
        assert np.array_equal(np.signbit(got), np.signbit(true) & ~np.isnan(true) | np.signbit(got) & np.isnan(got))
        return
    ufunc = getattr(np, name)
    values = special(np.dtype(dtype))
    operands = [values] if ufunc.nin == 1 else [a.ravel() for a in np.meshgrid(values, values)]
    for i in range(operands[0].size):
        # Alone, because a flag belongs to one of them, and among ordinary numbers.
        one = [x[i : i + 1] for x in operands]
        kinds = set()
        with np.errstate(all="call", call=lambda kind, _flags, kinds=kinds: kinds.add(kind)):
            wanted = ufunc(*one)
        flags = [k in kinds for k in ("divide by zero", "overflow", "invalid value")]
        for n in (1, 33):
            block = [np.full(n, 0.5 if name != "arccosh" else 1.5, dtype) for _ in one]
            for b, x in zip(block, one, strict=True):
                b[n // 2] = x[0]
            got, raised = run(kernel, *block)
            there = got[n // 2 : n // 2 + 1]
            assert np.isnan(there) == np.isnan(wanted), f"{name} of {one}: {there}, NumPy {wanted}"
            if not np.isnan(there):
                assert np.signbit(there) == np.signbit(wanted), f"{name} of {one}: {there}, NumPy {wanted}"
                assert there == wanted or abs(there - wanted) <= 5 * np.spacing(np.abs(there)), f"{name} of {one}"
            if name == "power" and np.isinf(one).any():
                continue  # some of NumPy's loops call infinity an overflow
            assert [bool(raised[0]), bool(raised[1]), bool(raised[3])] == flags, f"{name} of {one}: {raised}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_result_depends_on_its_argument_alone(level: str, name: str, dtype: str) -> None:
    """Not on its place in the block, nor its neighbours, nor on where the result goes; and raises no flag."""
    kernel = found(level, name, dtype)
    rng = np.random.default_rng(5)
    n_inputs = 2 if name == "power" else 1
    whole = [rng.uniform(0.01, 0.99, 300).astype(dtype) + (name == "arccosh") for _ in range(n_inputs)]
    wanted, flags = run(kernel, *whole)
    assert flags == (0, 0, 0, 0)
    for n in (*range(71), 127, 128, 129, 300):
        start = (7 * n) % (301 - n)
        part = [x[start : start + n].copy() for x in whole]
        memory = np.full(n + 8, 7, dtype)
        ctests.kernel_run(kernel, n, (*part, memory[:n]))
        assert memory[:n].tobytes() == wanted[start : start + n].tobytes()
        assert (memory[n:] == 7).all()
        for k in range(n_inputs):
            there = [x.copy() for x in part]
            ctests.kernel_run(kernel, n, (*there, there[k]))
            assert there[k].tobytes() == wanted[start : start + n].tobytes()
    odd = [x.copy() for x in whole]
    odd[0][::3] = np.nan
    beside, _ = run(kernel, *odd)
    keep = ~np.isnan(odd[0])
    assert beside[keep].tobytes() == wanted[keep].tobytes()


def main() -> None:
    """The largest error of each function at each level: over 10⁶ points or more each."""
    print("| function |", " | ".join(f"{level} {dtype}" for dtype in ELEMENTS for level in LEVELS), "|")
    print("|---|" + "---|" * (len(ELEMENTS) * len(LEVELS)))
    for name in NAMES:
        cells = []
        for dtype in ELEMENTS:
            for level in LEVELS:
                kernel = find(level, name, np.dtype(dtype))
                errors = [worst(kernel, name, x)[0] for x in sweeps(name, np.dtype(dtype), 300_000)] if kernel else [0]
                cells.append(f"{max(errors):.2f}" if kernel else "NumPy's")
        print(f"| `{name}` |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
