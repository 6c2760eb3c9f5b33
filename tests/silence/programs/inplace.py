"""The dtype of in-place operators: the target's, whatever the operand; and errors where NumPy has them."""

from __future__ import annotations

import operator

import numpy as np

from . import REGISTERED, program, smooth

OPERATORS = {
    "iadd": operator.iadd,
    "isub": operator.isub,
    "imul": operator.imul,
    "itruediv": operator.itruediv,
    "ifloordiv": operator.ifloordiv,
    "imod": operator.imod,
    "ipow": operator.ipow,
    "iand": operator.iand,
    "ior": operator.ior,
    "ixor": operator.ixor,
    "ilshift": operator.ilshift,
    "irshift": operator.irshift,
}
TARGETS = ("b1", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16")
OPERANDS = ("b1", "i1", "i4", "u8", "f4", "f8", "c16")
NUMBERS = (2, 100, 300, 0.5, 1e300, True, 2j, -1)


def by_arrays(operate):
    """Every operator on a target of each dtype by arrays of each: what NumPy refuses is part of the result."""

    def f(x, *operands):
        results = []
        for target in TARGETS:
            y = np.asarray(x).astype(target)
            for operand in operands:
                z = y.copy()
                other = z
                try:
                    z = operate(z, operand)
                except TypeError:
                    results.append(None)
                else:
                    results += [z, other]
        return results

    return f


def by_numbers(operate, number):
    """Of a target of one dtype given as the argument, by a number of Python."""

    def f(x):
        y = x * True
        other = y
        y = operate(y, number)
        return y, other

    return f


def _register() -> None:
    """One program an operator and dtype for numbers would be too many: an operator and a number, dtypes in turn."""
    for k, (name, operate) in enumerate(OPERATORS.items()):
        for target in TARGETS[k % 3 :: 3]:
            f = by_numbers(operate, NUMBERS[(k + len(target) + TARGETS.index(target)) % len(NUMBERS)])
            f.__name__ = f"{name}_{target}_by_a_number"
            program(f"{target}[3]")(f)
        f = one_by_another(operate)
        for target, operand in zip(TARGETS[k % 2 :: 2], OPERANDS[k % 4 :] + OPERANDS, strict=False):
            named = one_by_another(operate)
            named.__name__ = f"{name}_{target}_by_{operand}"
            program(f"{target}[3]", f"{operand}[3] pos")(named)


def one_by_another(operate):
    def f(x, z):
        y = x.copy()
        other = y
        y = operate(y, z)
        return y, other

    return f


_register()
assert REGISTERED


@program("f8[4]")
def float32_by_float64(x):
    y = x.astype(np.float32)
    y += x * 0.1
    return y * 1.0


@program("f4[4]", "f8[4]")
def float32_stays(x, z):
    y = x * 2
    y += z
    y *= np.float64(1.1)
    y -= 0.1
    return y


@program("i1[4]")
def bytes_wrap(x):
    z = x * 1
    z += 100
    z *= 3
    return z


@program("u1[4]")
def unsigned_bytes_wrap(x):
    z = x * 1
    z -= 7
    return z


@program("i4[4]")
def integers_divided_in_place(x):
    y = x * 1
    y /= 2
    return y


@program("f8[4]")
def floats_by_a_complex_number(x):
    y = x * 1
    y += 1j
    return y


@program("b1[4]")
def booleans_by_a_number(x):
    y = x | False
    y += 1
    return y


@program("b1[4]")
def booleans_by_booleans(x):
    y = x | False
    y += True
    y *= x
    return y


@program("b1[4]")
def booleans_subtracted(x):
    y = x | False
    y -= True
    return y


@program("c16[33]", "c16[33]")
def complex_product_in_place(x, z):
    y = x * 1
    y *= z
    np.square(y, out=y)
    return y


@program("c8[33]", "c8[33]")
def small_complex_product_in_place(x, z):
    y = x.copy()
    y *= z
    y /= x
    return y


@program("f8[4]", "f8[2,4]")
def in_place_by_a_larger_one(x, z):
    y = x * 1
    y += z
    return y


@program("f8[1,4]", "f8[2,4]")
def in_place_by_a_larger_one_of_the_same_rank(x, z):
    y = x * 1
    y += z
    return y


@program("f8[2,4]", "f8[4]")
def in_place_by_a_smaller_one(x, z):
    y = x * 1
    y -= z
    y[:, 0] /= z[:2]
    return y


@program("f8[4]")
def scalar_in_place_rebinds(x):
    s = x.sum()
    t = s
    s += 1
    s *= 2
    return s, t


@program("f4[4]")
def scalar_in_place_promotes(x):
    s = x.sum()
    s += np.float64(0.1)
    t = x[0]
    t *= 2.5
    return s, t


@program("i8[4]")
def integer_scalar_in_place_promotes(x):
    s = x.sum()
    s /= 2
    t = x[0]
    t += 0.5
    return s, t


@program("f8[]")
def argument_of_no_dimension(x):
    y = x
    y += 1
    return y


@program("f8[3,3]", "f8[3,3]")
def matrix_product_in_place(x, z):
    y = x * 1
    w = y
    y @= z
    return y, w


@program("f8[3]", "f8[3,3]")
def matrix_product_in_place_of_a_row(x, z):
    y = x * 1
    y @= z
    return y


@program("i8[4]", "f8[4]")
def out_of_another_dtype(x, z):
    y = x * 1
    np.add(x, z, out=y, casting="unsafe")
    return y


@program("i8[4]", "f8[4]")
def out_of_another_dtype_refused(x, z):
    y = x * 1
    np.add(x, z, out=y)
    return y


@program("f4[4]", "f8[4]")
def assigned_from_another_dtype(x, z):
    y = x * 1
    y[:] = z
    y[0] = 1e300
    y[1:2] = z[:1] + 1
    return y


@program("i8[4]", "f8[4]")
def floats_assigned_to_integers(x, z):
    y = x * 1
    y[:] = z
    y[0] = 2.9
    return y


@program("f8[4]", "c16[4]")
def complex_assigned_to_floats(x, z):
    y = x * 1
    y[:] = z
    return y


@program("f8[4]")
def complex_number_assigned_to_a_float(x):
    y = x * 1
    y[0] = 1j
    return y


@program("i1[4]")
def large_number_assigned_to_a_byte(x):
    y = x * 1
    y[0] = 300
    return y


@program("u1[4]")
def negative_number_assigned_to_an_unsigned(x):
    y = x * 1
    y[0] = -1
    return y


@program("f8[4] ro")
def read_only_argument(x):
    x += 1
    return x


@program("f8[4] ro")
def read_only_argument_by_an_element(x):
    x[0] = 1
    return x


@program("f8[4] ro")
def read_only_argument_copied(x):
    y = x.copy()
    y += 1
    return y


@program("f8[]")
def no_dimension_in_place_twice(x):
    y = np.zeros(()) + x
    z = np.asarray(y).copy()
    box = [z, z]
    z *= z
    z //= 2
    z += 1
    return box


@program("f8[]")
def no_dimension_to_a_power_in_place(x):
    y = x.copy()
    z = y
    y **= 3
    y **= 2.0
    y += 1
    return z


@program("f8[]", lambda seed: 1.5 * seed)
def no_dimension_by_a_number_in_place_twice(x, t):
    y = x.copy()
    z = y
    y += t
    y *= t
    return z


@program("b1[4]")
def casting_is_checked_before_shapes(x):
    y = x.copy()
    try:
        y += np.ones(7)
    except TypeError:
        return x
    return y


@program("f8[]")
def argument_of_no_dimension_copied_and_written_twice(x):
    y = x.copy()
    z = y
    y += 1
    y += 1
    return z > 1, z


@smooth("f8[2,2]")
def product_by_a_stack_of_one(x):
    y = x * 2.0
    y @= x[None]
    return y


@smooth("f8[3,2,2]")
def product_of_a_stack(x):
    y = x * 2.0
    y @= x[0]
    return y


@smooth("f8[2]")
def product_of_a_row_by_a_stack_of_one(x):
    y = x * 2.0
    y @= np.outer(x, x)[None, None]
    return y
