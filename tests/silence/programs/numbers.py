"""Numbers among the arguments, scalars of NumPy, arrays of no dimension: promotion, overflow, powers, quotients."""

from __future__ import annotations

import math

import numpy as np

from . import program, smooth


def real(seed):
    return [1.5, -2.25, 0.0][seed % 3]


def whole(seed):
    return [3, 2, 5][seed % 3]


def large(seed):
    return [300, 2**40, 7][seed % 3]


def imaginary(seed):
    return [1.5 + 2j, 2j, 0j][seed % 3]


def switch(seed):
    return bool(seed % 2)


def single(seed):
    return np.float32(real(seed))


def double(seed):
    return np.float64(real(seed))


def short(seed):
    return np.int8(whole(seed) * 20)


@program("f8[3]", real)
def array_by_a_float(x, t):
    return x * t + t, t * 2, t**2


@program("f4[3]", real)
def single_array_by_a_float(x, t):
    return x * t, x + t * 1e-9, t / 3


@program("f4[3]", double)
def single_array_by_a_double(x, t):
    return x * t, t * 2, t + 1


@program("f8[3]", single)
def array_by_a_single(x, t):
    return x * t, t * 2, t / 3, t + 1e-9


@program("i8[3]", whole)
def integers_by_an_int(x, n):
    return x + n, x // n, x % n, x**n, n / 2, n**2


@program("i1[3]", whole)
def bytes_by_an_int(x, n):
    return x + n, x * n, n * 100


@program("i1[3]", large)
def bytes_by_a_large_int(x, n):
    return x + n


@program("u1[3]", whole)
def unsigned_by_a_negative_int(x, n):
    return x - n, x * -n


@program("f4[3]", large)
def single_by_a_large_int(x, n):
    return x * n, n + 1


@program("f8[3]", imaginary)
def array_by_a_complex_number(x, z):
    return x * z, z.real * x, abs(z), z**2


@program("f4[3]", imaginary)
def single_by_a_complex_number(x, z):
    return x * z


@program("f8[3]", switch)
def array_by_a_boolean(x, flag):
    return x * flag, flag + 1, flag & True, x if flag else -x


@program("i8[3]", short)
def integers_by_a_byte(x, n):
    return x + n, n * n, n + 1, n * 2


@program(real, real)
def floats_only(a, b):
    return a * b, a + b, a - 1, abs(a), -a, a**2


@program(real, whole)
def float_and_int_only(a, n):
    return a**n, n**a if a >= 0 else 0.0, a // n, a % n, divmod(a, n)


@program(whole, whole)
def ints_only(a, b):
    return a // b, a % b, a / b, divmod(a, b), a**b, a << b, a & b, -a


@program(large)
def int_overflow_of_python_does_not_exist(n):
    return n**4, n * n * n * n


@program(large, "i8[2]")
def int_too_large_for_an_array(n, x):
    return x + n**2


@program(real)
def numpy_on_a_float(t):
    return np.sin(t), np.add(t, 1), np.asarray(t) * 2


@program(real)
def math_on_a_float(t):
    return math.sin(t) + math.floor(t), round(t, 1), int(t)


@program(real)
def formatted_float(t):
    return f"{t:.2f}"


@program(real, "f8[3]")
def branch_on_a_float(t, x):
    return x * 2 if t > 0 else x * 3


@program(whole, "f8[3]")
def loop_over_an_int(n, x):
    for _ in range(n):
        x = x * 2
    return x


@program(whole)
def array_of_an_int(n):
    return np.arange(n) * 2, np.zeros((n, 2)), np.ones(n)


@program(real)
def array_of_a_float(t):
    return np.array([t, 2 * t]), np.full(3, t), np.array(t)


@program("f8[3]", real)
def number_written_into_an_array(x, t):
    y = x * 1
    y[0] = t
    y += t
    return y


@program("f4[3]", real)
def number_written_into_singles(x, t):
    y = x * 1
    y += t
    y *= t
    return y


@program("f8[3]", whole)
def number_as_an_index(x, n):
    return x[n % 3], x[: n % 3], x[-1 - n % 3]


@program(real)
def number_in_place(t):
    s = t
    t += 1
    t *= 2
    return s, t


@program(single)
def scalar_in_place(t):
    s = t
    t += 1
    t *= np.float64(2)
    return s, t


@program(real)
def is_integer_of_a_float(t):
    return t.is_integer(), t.hex(), t.real, t.imag


@program(whole)
def methods_of_an_int(n):
    return n.bit_length(), n.real, n.numerator


@program(real, "f8[3]")
def float_type_checks(t, x):
    return x * (2 if isinstance(t, float) else 3) * (2 if np.isscalar(t) else 7)


@program(whole, "f8[3]")
def int_type_checks(n, x):
    return x * (2 if isinstance(n, int) else 3) * (2 if isinstance(n, float) else 5)


@program(switch, "f8[3]")
def bool_type_checks(flag, x):
    return x * (2 if flag is True else 3 if flag is False else 5)


@program(single, "f8[3]")
def scalar_type_checks(t, x):
    return (
        x
        * (2 if isinstance(t, np.float32) else 3)
        * (2 if type(t) is np.float32 else 5)
        * (2 if t.dtype == "f4" else 7)
    )


@program(real)
def equal_to_an_int(t):
    return t == 0, t != 0, 1 if t else 2


@program("f8[]", "f8[3]")
def array_of_no_dimension(s, x):
    return s * x, s + 1, s * s, s[()]


@program("f4[]", "f8[3]")
def single_of_no_dimension(s, x):
    return s * x, s + 1.5, s + np.float64(1)


@program("f4[]", "f4[3]")
def weak_promotion_of_singles(s, x):
    return s * 2.5, x * 2.5, s * x * 1e-40


@smooth("f8[3] pos")
def element_to_a_power(x):
    return x[0] ** 2.5, x[1] ** 0.3, x[2] ** x[0]


@program("f4[5] pos")
def single_elements_to_a_power(x):
    return x[0] ** 2.5, x[1] ** 0.3, x[2] ** x[0], x[3] ** -1.7, x[4] ** 7


@program("f8[64] pos")
def many_elements_to_a_power(x):
    return [x[k] ** (0.1 * k) for k in range(64)]


@smooth("f8[3] pos")
def powers_of_an_array(x):
    return x**2, x**2.0, x**0.5, x**-1, x**1, x**0, x**3


@program("i8[3] pos")
def integer_powers(x):
    return x**2, x**0, 2**x, x**2.0


@program("i8[3]")
def integer_quotients(x):
    return x // 2, x % 3, -x // 2, x / 2, divmod(x, 2), x // -2


@program("f8[3]")
def float_quotients(x):
    return x // 0.5, x % 0.7, divmod(x, -0.3), -x % 2


@program("i8[3]")
def division_by_zero_of_integers(x):
    return x // 0, x % 0


@program("f8[3]")
def division_by_zero_of_floats(x):
    return x / 0, x // 0, 0 / (x * 0)


@program("i8[3]")
def overflow_of_integers(x):
    return x * 2**62, x + (2**63 - 1), abs(x - 2**63 + 6)


@program("f2[3]")
def half_precision(x):
    return x * 2.5, x.sum(), x + 1e-4, x * 1e4


@program("f2[3]")
def half_precision_overflows(x):
    with np.errstate(over="ignore"):
        return x * 1e5


@program("f8[3]")
def rounding(x):
    return np.round(x), np.round(x, 2), x.round(1), np.rint(x), np.trunc(x)


@program("f8[3]")
def comparisons_with_numbers(x):
    return x > 0, x == 1, (x < 1) & (x > -1), x > 0


@program("u8[3]", "i8[3]")
def unsigned_and_signed(x, z):
    return x + z, x > z, x // (abs(z) + 1)


@program("u8[3]")
def unsigned_minus(x):
    return -x, x - 10, ~x


@program("b1[3]")
def boolean_arithmetic(x):
    return x + x, x * 2, ~x, x + 1, x.sum(), x.mean()


@program("f8[3]", real, real)
def two_floats_with_one_meaning(x, a, b):
    return x * (a + b), x + a * b, (a - b) * 2


@program("f8[3]")
def keyword_defaults(x, scale=2.0, *, shift=1):
    return x * scale + shift


@program("f8[3]")
def none_and_text_arguments(x, order=None, how="C"):
    return x.reshape(-1, order=how) if order is None else x
