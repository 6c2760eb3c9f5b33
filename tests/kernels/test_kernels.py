"""pyop's own kernels against NumPy: the same bits and the same floating-point flags, at every level of processor."""

from __future__ import annotations

import functools
import itertools
import platform
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
# In the order of pyop::Element.
DTYPES = [np.dtype(c) for c in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16")]
REAL_FLOATS = [np.dtype("f4"), np.dtype("f8")]

UNARY = [
    *("negative", "positive", "absolute", "fabs", "sign", "square", "sqrt", "reciprocal"),
    *("floor", "ceil", "trunc", "rint"),
    *("logical_not", "isnan", "isinf", "isfinite", "signbit", "invert"),
]
ORDER = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
BINARY = [
    *("add", "subtract", "multiply", "divide", "minimum", "maximum", "copysign"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("left_shift", "right_shift", *ORDER),
]
# What a plan relies on: dtypes by character. Elsewhere a kernel that is not there is no error.
INTEGERS = "bBhHiIlL"
EXPECTED = {
    **dict.fromkeys(["add", "subtract", "multiply", "negative", "absolute", "square"], INTEGERS + "fd"),
    # NaNs and zeros of floats are those of NumPy's loops on x86 (extremum.cpp).
    **dict.fromkeys(["minimum", "maximum"], INTEGERS + "fd" * (platform.machine() == "x86_64")),
    **dict.fromkeys(["divide", "sqrt", "reciprocal", "floor", "ceil", "trunc", "rint", "copysign"], "fd"),
    **dict.fromkeys(ORDER, "?bBhHiIlLfd"),
}


def find(level: str, kind: str, first: np.dtype, second: np.dtype | None = None, *names: str) -> int:
    return ctests.kernel_find(level, kind, DTYPES.index(first), DTYPES.index(second or first), *names)


def takes(ufunc: np.ufunc, dtype: np.dtype) -> bool:
    """Whether NumPy has a loop for this dtype, which only then is asked of a kernel (fabs of integers converts)."""
    return bool(ufunc.resolve_dtypes((dtype,) * ufunc.nin + (None,))[0] == dtype)


@functools.cache
def interesting(dtype: np.dtype) -> np.ndarray:
    """Values at which a loop may go wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [
            info.min,
            info.min + 1,
            info.max - 1,
            info.max,
            info.max // 2,
            info.min // 2,
            0,
            1,
            2,
            3,
            7,
            8,
            13,
            31,
            63,
        ]
        if dtype.kind == "i":
            near += [-1, -2, -7, -8]
        return np.array(near, dtype)
    if dtype.kind == "c":
        part = interesting(np.dtype(f"f{dtype.itemsize // 2}"))
        return np.array([complex(a, b) for a, b in zip(part, np.roll(part, 5), strict=True)]).astype(dtype)
    info = np.finfo(dtype)
    one = np.array(1, dtype)
    values = [
        0.0,
        1.0,
        0.1,
        0.5,
        1.5,
        2.5,
        np.pi,
        1e-3,
        info.tiny,
        info.smallest_subnormal,
        info.tiny * 0.75,
        info.max,
        np.inf,
        np.nan,
    ]
    values += [
        np.nextafter(one, 2 * one),
        np.nextafter(one, 0 * one),
        info.max / 2,
        2.0**23 + 0.5,
        2.0**52 + 1,
        2.0**31,
        2.0**63,
    ]
    with np.errstate(all="ignore"):
        there = np.array(values, dtype)
        # of a quiet NaN, other bits
        payload = np.frombuffer(np.full(1, np.nan, dtype).view(f"u{dtype.itemsize}") | 0x1234, dtype)
        return np.concatenate([there, -there, payload])


def calm(dtype: np.dtype) -> np.ndarray:
    """Values that raise no flag in most operations."""
    return np.array([1, 0, 1, 1, 0], dtype) if dtype.kind in "biu" else np.array([1, 2.5, 0.3, 7, 4.25], dtype)


def blocks(dtype: np.dtype, n_inputs: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Operands: pairs of interesting values, then all short lengths, then a long block."""
    values = interesting(dtype)
    if n_inputs == 1:
        yield [values.copy()]
    else:
        pairs = np.array(list(itertools.product(range(len(values)), repeat=2)))
        yield [np.ascontiguousarray(values[pairs[:, i]]) for i in range(2)]
    for n in (*range(71), 127, 1000):
        pool = values if n % 2 else calm(dtype)
        yield [rng.choice(pool, n) for _ in range(n_inputs)]


def expected(ufunc: Any, operands: list[np.ndarray]) -> tuple[np.ndarray, tuple[int, ...]]:
    """What NumPy writes, and which flags it raises."""
    raised = set()
    with np.errstate(all="call", call=lambda kind, _flags: raised.add(kind)):
        result = ufunc(*operands)
    return result, tuple(int(k in raised) for k in ("divide by zero", "overflow", "underflow", "invalid value"))


def shifted(a: np.ndarray, by: int) -> np.ndarray:
    """A copy whose data lies `by` elements after a boundary of 64 bytes."""
    size = a.dtype.itemsize
    memory = np.empty(a.nbytes + 128 + by * size, np.uint8)
    start = -memory.ctypes.data % 64 + by * size
    there = memory[start : start + a.nbytes].view(a.dtype)
    there[...] = a
    return there


def run(
    kernel: int, operands: list[np.ndarray], result: np.dtype, *, by: int = 1
) -> tuple[np.ndarray, tuple[int, ...]]:
    """What a kernel writes, and which flags it raises; what lies behind its output must stay."""
    n = operands[0].size
    memory = shifted(np.frombuffer(b"\xa5" * (result.itemsize * (n + 4)), result), by)
    flags = ctests.kernel_run(kernel, n, (*(shifted(a, by + k) for k, a in enumerate(operands)), memory[:n]))
    assert memory[n:].tobytes() == b"\xa5" * (4 * result.itemsize)
    return memory[:n], flags


def same(got: np.ndarray, wanted: np.ndarray, operands: list[np.ndarray], *, any_nan: bool = False) -> bool:
    """The same bits; where two operands are NaN, and with `any_nan` always, it may be any NaN."""
    assert got.dtype == wanted.dtype
    if got.tobytes() == wanted.tobytes():
        return True
    if got.dtype.kind not in "fc":
        return False
    kind = np.dtype(f"f{got.dtype.itemsize // (2 if got.dtype.kind == 'c' else 1)}")
    parts = [a.view(kind) for a in (got, wanted, *operands) if a.dtype == got.dtype]
    free = (
        np.isnan(parts[0])
        & np.isnan(parts[1])
        & (sum(np.isnan(a).astype(int) for a in parts[2:]) > (-1 if any_nan else 1))
    )
    bits = [a.view(f"u{kind.itemsize}")[~free] for a in parts[:2]]
    return np.array_equal(bits[0], bits[1])


def check(kernel: int, ufunc: Any, blocks_of: Iterator[list[np.ndarray]], what: str, *, any_nan: bool = False) -> None:
    for operands in blocks_of:
        wanted, flags = expected(ufunc, operands)
        got, raised = run(kernel, operands, wanted.dtype, by=operands[0].size % 3)
        assert same(got, wanted, operands, any_nan=any_nan), f"{what}: {operands} gives {got}, NumPy {wanted}"
        assert raised == flags, (
            f"{what}: flags (divide, overflow, underflow, invalid) {raised}, NumPy {flags}: {operands}"
        )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_kernel_is_the_ufunc(level: str, name: str) -> None:
    rng = np.random.default_rng(len(name))
    ufunc = getattr(np, name)
    n_inputs = 1 if name in UNARY else 2
    found = ""
    for dtype in DTYPES:
        kernel = find(level, "kernel", dtype, None, name)
        if not kernel or not takes(ufunc, dtype):
            continue
        found += dtype.char
        check(kernel, ufunc, blocks(dtype, n_inputs, rng), f"{name} of {dtype}")
    assert found
    assert set(EXPECTED.get(name, "")) <= set(found)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*ORDER, *("add", "subtract", "multiply", "divide", "maximum")])
@pytest.mark.parametrize("first", [False, True])
def test_with_a_number(level: str, name: str, first: bool) -> None:
    """The number stands last, whichever of the two it is, and one element of it is read."""
    rng = np.random.default_rng(6)
    ufunc = getattr(np, name)
    for dtype in DTYPES:
        kernel = ctests.kernel_find(level, "number", DTYPES.index(dtype), first, name)
        compares = name in ORDER and dtype.kind in "iuf"
        computes = name in FUSED and dtype in REAL_FLOATS and fuses(level)
        assert bool(kernel) == (compares or computes), (name, dtype)
        if not kernel:
            continue

        def one(x: np.ndarray, number: np.ndarray) -> np.ndarray:
            y = np.full_like(x, number[0]) if x.size else x
            return ufunc(y, x) if first else ufunc(x, y)

        some = (
            [rng.choice(pool, n), np.concatenate([rng.choice(pool, 1), rng.choice(pool, max(n - 1, 0))])]
            for n in (*range(1, 70), 300)
            for pool in (interesting(dtype), calm(dtype) if dtype.kind == "f" else interesting(dtype))
        )
        check(kernel, one, some, f"{name} of {dtype} and a number", any_nan=True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where(level: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(1)
    kernel = find(level, "kernel", dtype, None, "where")
    with_condition = ([rng.random(x.size) < 0.5, x, y] for x, y in blocks(dtype, 2, rng))
    check(kernel, np.where, with_condition, f"where of {dtype}")
    # A bool may be any byte.
    odd = np.array([0, 1, 2, 255, 128, 0] * 3, np.uint8).view(bool)
    x, y = np.arange(18).astype(dtype), np.arange(18, 36).astype(dtype)
    check(kernel, np.where, iter([[odd, x, y]]), f"where of {dtype}")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_output_may_be_an_input(level: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(2)
    for name in BINARY + UNARY:
        kernel = find(level, "kernel", dtype, None, name)
        if not kernel or not takes(getattr(np, name), dtype):
            continue
        n_inputs = 1 if name in UNARY else 2
        for n, k in itertools.product((1, 5, 16, 67), range(n_inputs)):
            operands = [rng.choice(interesting(dtype), n) for _ in range(n_inputs)]
            wanted, _ = expected(getattr(np, name), operands)
            arrays = [a.copy() for a in operands]
            ctests.kernel_run(kernel, n, (*arrays, arrays[k]))
            got = arrays[k].view(np.uint8)[: wanted.nbytes].view(wanted.dtype)
            assert same(got, wanted, operands), f"{name} of {dtype} into operand {k}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_cast(level: str, source: np.dtype) -> None:
    for target in DTYPES:
        kernel = find(level, "cast", source, target)
        assert bool(kernel) == np.can_cast(source, target, "same_kind"), f"{source} to {target}"
        if kernel:
            rng = np.random.default_rng(3)
            check(kernel, lambda a, to=target: a.astype(to), blocks(source, 1, rng), f"{source} to {target}")


FUSED = ("add", "subtract", "multiply", "divide")


def fuses(level: str) -> bool:
    """Where there are levels, the lowest takes one pass an operation."""
    return level != "baseline" or platform.machine().lower() not in ("x86_64", "amd64")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("outer", FUSED)
def test_fused(level: str, outer: str) -> None:
    rng = np.random.default_rng(4)
    o = getattr(np, outer)
    for dtype, left, right in itertools.product(REAL_FLOATS, (*FUSED, "none"), (*FUSED, "none")):
        kernel = find(level, "fused", dtype, None, outer, left, right)
        assert bool(kernel) == (fuses(level) and (left, right) != ("none", "none"))
        if not kernel:
            continue
        f, g = getattr(np, left, None), getattr(np, right, None)

        def fused(*operands: np.ndarray, f: Any = f, g: Any = g) -> np.ndarray:
            at = 2 if f else 1
            x = f(*operands[:2]) if f else operands[0]
            return o(x, g(*operands[at:]) if g else operands[at])

        n_inputs = 2 + bool(f) + bool(g)
        some = (
            [rng.choice(pool, n) for _ in range(n_inputs)]
            for n in (*range(20), 67, 300)
            for pool in (interesting(dtype), calm(dtype))
        )
        check(kernel, fused, some, f"({left}) {outer} ({right}) of {dtype}", any_nan=True)
    assert not find(level, "fused", np.dtype("i4"), None, outer, "add", "none")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tail", FUSED)
@pytest.mark.parametrize("first", [True, False])
def test_fused_with_a_tail(level: str, tail: str, first: bool) -> None:
    rng = np.random.default_rng(5)
    t = getattr(np, tail)
    for dtype, outer, left, right in itertools.product(
        REAL_FLOATS, FUSED, ("multiply", "none", "add"), ("multiply", "none", "add")
    ):
        kernel = ctests.kernel_find(level, "tail", DTYPES.index(dtype), first, tail, outer, left, right)
        products = {left, right} <= {"multiply", "none"} and "multiply" in (left, right)
        assert bool(kernel) == (fuses(level) and tail != "divide" and outer in ("add", "subtract") and products)
        if not kernel:
            continue
        o, two = getattr(np, outer), left == right

        def fused(*operands: np.ndarray, o: Any = o, left: str = left, two: bool = two) -> np.ndarray:
            v, inner = (operands[-1], operands[:-1]) if first else (operands[0], operands[1:])
            x = inner[0] * inner[1] if left == "multiply" else inner[0]
            y = inner[-2] * inner[-1] if two or left == "none" else inner[-1]
            return t(o(x, y), v) if first else t(v, o(x, y))

        some = (
            [rng.choice(pool, n) for _ in range(5 if two else 4)]
            for n in (*range(20), 67, 300)
            for pool in (interesting(dtype), calm(dtype))
        )
        check(kernel, fused, some, f"{tail} of ({left}) {outer} ({right}) of {dtype}", any_nan=True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16, 12])
def test_gather_and_scatter(level: str, itemsize: int) -> None:
    rng = np.random.default_rng(itemsize)
    for n, step, odd in itertools.product((0, 1, 3, 17, 100), (-3, -1, 0, 1, 2), (0, 1)):
        stride = step * itemsize + odd * (step not in (0, 1))
        span = max(n - 1, 0) * abs(stride) + itemsize
        offset = max(n - 1, 0) * -stride if stride < 0 else 0
        strided = rng.integers(0, 255, span + odd, np.uint8)[odd:]
        at = (offset + np.arange(n) * stride)[:, None] + np.arange(itemsize)
        gathered = np.zeros(n * itemsize + 1, np.uint8)
        ctests.kernel_move(level, True, (gathered, strided), stride, n, itemsize, offset)
        assert np.array_equal(gathered[:-1].reshape(n, itemsize), strided[at])
        assert gathered[-1] == 0
        if step == 0:
            continue
        wanted = np.zeros_like(strided)
        wanted[at] = strided[at]
        written = np.zeros_like(strided)
        ctests.kernel_move(level, False, (written, gathered), stride, n, itemsize, offset)
        assert np.array_equal(written, wanted)


def test_nothing_for_unknown_names() -> None:
    for name in ("nothing", "", "fmin", "hypot"):
        assert find(LEVELS[-1], "kernel", np.dtype("f8"), None, name) == 0
    # Integer division and complex products are NumPy's.
    assert find(LEVELS[-1], "kernel", np.dtype("i8"), None, "divide") == 0
    assert find(LEVELS[-1], "kernel", np.dtype("c16"), None, "multiply") == 0
