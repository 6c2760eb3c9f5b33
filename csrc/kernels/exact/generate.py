"""Writes the tables of the exact kernels: `python csrc/kernels/exact/generate.py`, which needs mpmath.

Every number is a constant of mathematics, split into doubles that add up to it: head, tail, and where it is asked for
a third. Nothing is fitted, so nothing depends on how an optimiser was set.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

from mpmath import mp, mpf

mp.prec = 400
HERE = pathlib.Path(__file__).parent


def split(x: mpf, parts: int = 2, bits: int = 53) -> list[float]:
    """Doubles of which each is what the ones before left over, rounded; the first has so many bits."""
    found = []
    for k in range(parts):
        with mp.workprec(bits if k == 0 else 53):
            head = float(+x)
        found.append(head)
        x = x - mpf(head)
    return found


def row(numbers: Iterable[float]) -> str:
    return "    {" + ", ".join(float.hex(x) for x in numbers) + "},\n"


def constant(name: str, x: float) -> str:
    return f"constexpr double {name} = {float.hex(x)};\n"


def table(name: str, what: str, rows: list[list[float]]) -> str:
    columns = len(rows[0])
    head = f"\n// {what}\nalignas(64) constexpr double {name}[{len(rows)}][{columns}] = {{\n"
    return head + "".join(row(r) for r in rows) + "};\n"


def write(file: str, what: str, text: str) -> None:
    head = f"// kernels/exact/{file}: {what} Written by generate.py.\n#pragma once\n\n"
    namespace = "pyop::PYOP_KERNEL_LEVEL"
    body = f'#include "kernels/loops.h"\n\nnamespace {namespace} {{\n\n// clang-format off\n{text}// clang-format on\n'
    body += f"\n}}  // namespace {namespace}\n"
    (HERE / file).write_text(head + body)


def sine() -> None:
    steps = 128
    step = 2 * mp.pi / steps
    text = f"constexpr int kSineSteps = {steps};\n" + constant("kStepsPerRadian", float(1 / step))
    for k, part in enumerate(split(step)):
        text += constant(f"kStep{k + 1}", part)
    rows = []
    for k in range(steps):
        exact = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}
        s, c = (mp.sin(k * step), mp.cos(k * step)) if k % (steps // 4) else map(mpf, exact[k // (steps // 4)])
        rows.append(split(s) + split(c))
    text += table("kSines", "Of k steps: the sine, head and tail, and the cosine.", rows)
    write("sine_table.h", "sines and cosines of multiples of 2 pi / 128.", text)


def exponential() -> None:
    steps = 128
    step = mp.log(2) / steps
    text = f"constexpr int kExpSteps = {steps};\n" + constant("kExpStepsPerUnit", float(1 / step))
    # A head short enough for its product with the number of steps to be exact.
    head, tail = split(step, 2, 32)
    text += constant("kExpStep1", head) + constant("kExpStep2", tail)
    text += table(
        "kPowersOfTwo",
        "2 to the power k/128, head and tail.",
        [split(mpf(2) ** (mpf(k) / steps)) for k in range(steps)],
    )
    factors = ", ".join(float.hex(float(mp.log(2) ** n / mp.factorial(n))) for n in range(1, 7))
    text += f"\n// log(2)^n / n!, from n = 1 on.\nconstexpr double kTwos[] = {{{factors}}};\n"
    write("exp_table.h", "powers of two.", text)


def logarithm() -> None:
    steps = 128
    head, tail = split(mp.log(2), 2, 40)
    text = f"constexpr int kLogSteps = {steps};\n" + constant("kLn2Head", head) + constant("kLn2Tail", tail)
    per_head, per_tail = split(1 / mp.log(2))
    text += constant("kPerLn2Head", per_head) + constant("kPerLn2Tail", per_tail)
    rows, binary = [], []
    # As logarithm.cpp cuts it: row k is for numbers about 1 + k/128, or half of that, and 1 in the middle of row 0.
    for k in range(steps):
        middle = mpf(k) / steps + 1
        if middle > mpf("1.4140625"):
            middle /= 2
        c = mpf(float(1 / middle))
        rows.append([float(c), *split(-mp.log(c)), 0.0])
        binary.append([float(c), *split(-mp.log(c) / mp.log(2)), 0.0])
    text += table(
        "kLogs",
        "c, about 1 / (1 + k/128) (twice as much from the square root of 2 on), and -log(c): head, tail.",
        rows,
    )
    text += table("kLogs2", "The same to the base 2.", binary)
    write("log_table.h", "logarithms of numbers near 1.", text)


if __name__ == "__main__":
    sine()
    exponential()
    logarithm()
