"""Scratch."""
import numpy as np

from . import factory, program, smooth

@program("f4[3]", "f8[3]")
def iadd_cast(x, y): z = x * 1; z += y; return z, z.dtype.name
@program("i4[3]", "i8[3]")
def iadd_int_cast(x, y): z = x * 1; z += y; return z
@program("i8[3]", "f8[3]")
def iadd_int_float(x, y): z = x * 1; z += y; return z
@program("f8[3]")
def iadd_complex(x): z = x * 1; z += 1j; return z
@program("u1[3]")
def isub_wrap(x): z = x + np.uint8(0); z -= np.uint8(9); return z
@program("?[3]")
def ior_bool(x): z = x | False; z |= True; z &= x; z ^= x; return z
@program("?[3]")
def iadd_bool(x): z = x | False; z += 1; return z
@program("f8[3]")
def ipow(x): z = np.abs(x) + 1; z **= 2; z **= 0.5; z //= 0.7; z %= 0.3; return z
@program("i8[3]")
def itruediv_int(x): z = x * 1; z /= 2; return z
@program("i8[3] pos")
def ishift(x): z = x * 1; z <<= 2; z >>= 1; return z
@program("f8[3,3]")
def imatmul(x): z = x * 1; z @= x; return z
@program("f8[3]")
def broadcast_iadd_larger(x): z = x * 1; z += np.ones((2, 3)); return z
@program("f8[2,3]")
def broadcast_iadd_smaller(x): z = x * 1; z += x[0]; z += x[:, :1]; return z
@program("f8[3]")
def self_overlap(x): z = x * 1; z[1:] += z[:-1]; return z
@program("f8[4]")
def iadd_of_reverse(x): z = x * 1; z += z[::-1]; return z
@program("f8[3,3]")
def iadd_transposed(x): z = x * 1; z += z.T; return z
@program("f8[3]")
def scalar_iadd(x): s = x.sum(); t = s; s += 1; return s, t
@program("f8[3]")
def element_iadd(x): a = x[0]; b = a; a *= 2; return a, b, x
@program("f8[]")
def zero_d_iadd(x): a = x * 1; b = a; a += 1; return a, b
@program("f8[]")
def zero_d_array_iadd(x): a = x.copy(); b = a; a += 1; return a, b
@program("f8[3]")
def augmented_in_dict(x): d = {"a": x * 1}; e = d["a"]; d["a"] += 1; return d["a"], e
@program("f8[3]")
def augmented_attribute(x):
    class A: pass
    a = A(); a.v = x * 1; b = a.v; a.v += 1; return a.v, b
@program("f8[3]")
def augmented_element(x): z = x * 1; z[0] += 1; z[1:] *= 2; return z
@program("f8[3,2]")
def augmented_row(x):
    z = x * 1
    for r in z: r += 1
    return z
@program("f8[3]")
def out_argument(x): z = np.empty(3); np.add(x, 1, out=z); return z
@program("f8[3]")
def out_of_sum(x): z = np.zeros(()); np.sum(x, out=z); return z
@program("f4[3]")
def ufunc_dtype(x): return np.add(x, 1, dtype="f8"), np.sum(x, dtype="f8"), np.mean(x, dtype="f8"), np.multiply(x, x, dtype=np.float64), np.cumsum(x, dtype="f8"), np.prod(x, dtype="c16")
@program("i4[3]")
def int_sum_dtypes(x): return x.sum(), x.prod(), x.cumsum(), x.mean(), x.std(), np.add.reduce(x), x.sum(dtype="i1"), np.dot(x, x), x @ x, np.trace(np.diag(x))
@program("i1[3]")
def int8_reductions(x): return x.sum(), x.mean(), x.max(), np.median(x), np.average(x), x.dot(x), np.linalg.norm(x), x.ptp() if hasattr(x, "ptp") else np.ptp(x)
@program("f4[3]")
def float32_reductions(x): return x.sum(), x.mean(), x.std(), x.var(), np.median(x), np.average(x, weights=x), np.linalg.norm(x), np.percentile(x, 30), np.quantile(x, np.float32(0.5)), np.trapezoid(x), np.interp(x, [0, 1], [0, 1]), np.cov(x), np.corrcoef(x, x)
@program("f4[3]")
def float32_functions(x): return np.exp(x), np.linspace(x[0], x[1], 3), np.logspace(0, x[0], 3), np.arctan2(x, 1), np.hypot(x, 1), np.ldexp(x, 2), np.frexp(x), np.modf(x), np.nextafter(x, 1), np.spacing(x), np.cbrt(x), np.sinc(x), np.i0(x), np.unwrap(x), np.heaviside(x, 0.5), np.float_power(x, 2), np.signbit(x)
@program("f8[3]")
def casting_argument(x): return np.add(x, 1, casting="unsafe", dtype="f4"), np.subtract(x, x, casting="same_kind")
@program("f8[3]")
def casting_refused(x): return np.add(x, 1, casting="safe", dtype="i4")
@program("f8[3]")
def order_argument(x): return np.add(x, 1, order="F"), np.copy(x, order="F"), np.exp(x, subok=False)
@program("c16[3]")
def complex_functions(x): return x.real, x.imag, np.abs(x), np.angle(x), x.conj(), np.sort_complex(x), x == x, np.isreal(x), np.iscomplexobj(x), np.real_if_close(x), x ** 2, np.sqrt(x), np.exp(x), x.sum(), x.mean(), x.var(), x * 1j, abs(x), np.square(x), np.reciprocal(x)
@program("c8[3]")
def complex64_functions(x): return x * 2.0, x + 1j, x * np.float64(2), x.real.dtype.name, np.abs(x), x.mean(), x.std(), np.linalg.norm(x), np.vdot(x, x), x @ x
@program("c16[3]")
def complex_compare(x): return x < x[::-1]
@program("c16[3]")
def complex_max(x): return x.max(), np.maximum(x, x[::-1]), np.sort(x), np.argmax(x), np.clip(x, 0, 1) if False else 0
@program("i8[3]", "u8[3]")
def int_uint(x, y): return x + y, x - y, x // (y + np.uint64(1)), np.bitwise_and(x, x), x.astype("u8") + y, np.concatenate([x, y]), np.where(x > 0, x, y), np.stack([x, y]).dtype.name
@program("i8[3]")
def int_edge(x): return np.iinfo(x.dtype).max + x * 0, x + 2**62, -x, abs(x), np.abs(np.int64(-(2**63)) + x * 0)
@program("i4[3]")
def python_int_overflow(x): return x + 2**40
@program("i4[3]")
def python_int_fits(x): return x + 2**31 if False else x + (2**31 - 1), x * 2**16, np.int64(2**40) + x
@program("u1[3]")
def negative_python_int(x): return x + (-1)
@program("u1[3]")
def compare_out_of_range(x): return x < 300, x == -1, x > -5
@program("f4[3]")
def weak_scalars(x): return x + 1.0, x + 1, x + np.float64(1), x + np.array(1.0), x + np.array([1.0]), x * True, x + 1j, x + np.int64(1), x.sum() + 1.0, x.sum() + np.float64(1), x[0] * 2.0, x[0] * np.float64(2)
@program("f2[3]")
def weak_scalars_half(x): return x + 1e5, x * 1e-8, x[0] + 1e5, x + np.float32(1e5)
@program("i8[3]")
def weak_scalars_int(x): return x + 1.5, x / 2, x * True, x[0] / 2, x[0] + 1.5, x.sum() / 3, x.mean() * 2, x ** 2.0, x ** 0, 2 ** abs(x), x % 2.5
@program("?[3]")
def bool_scalars(x): return x * 2, x + 1.5, x[0] + x[1], x[0] * 2, -(x.astype(int)), x.sum() + 1, x.all(), x.any() + 1, ~x[0], np.logical_not(x), x[0] and x[1], x[0] | x[1]
@program("?[3]")
def bool_negative(x): return -x
@program("f8[5]")
def masks(x): m = x > 0; return x[m], x[~m].sum(), m.sum(), np.where(m)[0], x[m].size, np.compress(m, x), np.extract(m, x), np.place if False else 0
@program("f8[5]")
def mask_assign(x): z = x * 1; z[z > 0] = 0; return z
@program("f8[5]")
def mask_iadd(x): z = x * 1; z[z > 0] += 1; return z
@program("f8[4,4]")
def fancy(x): i = np.array([0, 2]); return x[i], x[:, i], x[i, i], x[i[:, None], i], x[i][:, i], x[..., i], x[i, 1:], x[1, i], x[i, None], x[None, i], x[-i], x[[True, False, True, False]], x[[0, 1], [True, False, True, False].index(True)]
@program("f8[4,4]")
def fancy_mixed(x): return x[[0, 1], :, None], x[:, None, [0, 1]], x[1:, [0, 2]][::-1], x[np.ix_([0, 1], [1, 2])], np.take(x, [[0, 1], [2, 3]]), np.take(x, 1, 0), x.take([-1], 1), x.flat[3] if False else 0, np.choose([0, 1, 0, 1], x), x[np.arange(4), np.arange(4)]
@program("f8[4,4]")
def fancy_out_of_range(x): return x[[0, 9]]
@program("f8[4,4]")
def take_modes(x): return np.take(x, [0, 9], axis=0, mode="clip"), np.take(x, [-5, 9], mode="wrap")
@program("i8[4] pos", "f8[9]")
def index_by_array(k, x): return x[k], x[k % 9].sum(), np.take(x, k), x[-k - 1], np.bincount(k, minlength=9), np.add.at if False else 0
@program("f8[4]")
def new_axes(x): return x[None], x[:, None], x[..., None], x[None, ..., None], np.expand_dims(x, (0, 2)), x.reshape(-1, 1), x.reshape((2, -1)), x.reshape(2, 2, order="F"), np.atleast_3d(x), x[np.newaxis, :, np.newaxis].squeeze()
@program("f8[2,3,4]")
def axes_moved(x): return x.transpose(2, 0, 1), x.transpose((1, 0, 2)), x.swapaxes(0, 2), np.moveaxis(x, 0, -1), np.rollaxis(x, 2), x.T, np.einsum("ijk->kji", x), x.sum((0, 2)), x.max(-1), np.linalg.norm(x, axis=(0, 1)), np.matrix_transpose(x), x.mT
@program("f8[2,3,4]")
def strides_of_results(x): return (x * 2).strides, x.T.copy().strides, (x.T * 2).strides, x[:, ::2].copy().strides, x.swapaxes(0, 1).astype("f4").strides, np.ascontiguousarray(x.T).strides if False else 0, np.concatenate([x.T, x.T]).strides, np.stack([x.T]).strides, np.where(x.T > 0, x.T, 0).strides, x.T.sum(0).strides, np.zeros_like(x.T).strides, x.T.reshape(-1).strides, np.exp(x.T).strides, (x.T + x.T).strides, (x.T + np.ones((4, 3, 2))).strides
@program("f8[3]")
def nan_results(x): return np.max([1.0, np.nan]) * x, np.maximum(x, np.nan), np.fmax(x, np.nan), np.nanmin(np.where(x > 0, np.nan, x)), np.isnan(x * np.nan).all(), np.sort(np.where(x > 0, np.nan, x)), np.argmax(np.where(x > 0, np.nan, x)), np.sign(x * np.nan), np.clip(x * np.nan, 0, 1), np.minimum.reduce(x * np.nan), np.array_equal(x * np.nan, x * np.nan), x != x
@program("f8[3]")
def inf_results(x): return x / 0, x * np.inf, np.inf - np.inf + x, np.exp(x * 1e4), np.log(np.zeros(3) * x), np.sqrt(-np.abs(x)), np.arcsin(x * 10), 0.0 / (x * 0), np.power(x, 0.5), np.mod(x, 0.0), x // 0
@program("i8[3]")
def int_division_by_zero(x): return x // (x * 0), x % (x * 0), x / 0
@program("f8[3]")
def warnings_of_numpy(x):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x / (x * 0)
@smooth("f8[4] pos")
def many_ops(x): return np.sum(np.log(x) * np.sqrt(x) / (1 + np.exp(-x)) - np.tanh(x) ** 3 + np.arctan2(x, 2.0) + np.hypot(x, 1.0) + np.expm1(x) * np.log1p(x) + np.sinh(x) + np.cbrt(x) + np.logaddexp(x, 1.0) + x ** x)
@smooth("f8[3,3]")
def views_and_sums(x): return (x[1:, :-1] * x[:-1, 1:]).sum() + x.T[0] @ x[:, 1] + np.diagonal(x, 1).prod() + x.ravel()[::2].sum() ** 2 + x[::-1, ::-1][0, 0] * x[-1, -1]
@smooth("f8[4]")
def loops_with_state(x):
    h = np.zeros(2)
    for k in range(4): h = np.tanh(np.stack([h[1], h[0] + x[k]]) * 0.5)
    return h
@smooth("f8[4]")
def in_place_accumulation(x):
    t = x * 0.0
    for k in range(3): t += x * k
    return t
@smooth("f8[4]")
def scatter_by_concatenate(x): return np.concatenate([x[:1] * 2, x[1:3] * x[2], [1.0], x[3:]])
@smooth("f8[4]")
def repeated_argument(x): return np.dot(x, x) * np.outer(x, x)[0] + np.einsum("i,i,i->i", x, x, x)
@smooth("f8[4]")
def integer_powers(x): return x ** 3 + x ** -2 + x ** 0 + x ** 1 + (-x) ** 2 + np.power(x, 3) + np.float_power(np.abs(x) + 1, 2) + np.square(x)
@smooth("f8[4]")
def abs_and_sign(x): return np.abs(x) * np.sign(x) + np.where(x > 0, x, -x) + np.fabs(x) + np.copysign(x, 1.0) + np.maximum(x, 0.1) + np.heaviside(x, 0.5) * x
@smooth("f8[4]")
def complex_inside(x): z = x * 1j + 1; return np.abs(z) ** 2 + (z * z.conj()).real + np.angle(z) + np.exp(z).imag + np.real(np.fft.fft(x))
@smooth("f4[4]")
def single(x): return np.sum(np.exp(x * np.float32(0.1)) * x)
@smooth("f8[4]")
def stop_by_number(x):
    s = 0.0
    for v in x:
        if len(x) > 10: break
        s = s + v * v
    else: s = s * 2
    return s
@smooth("f8[4]")
def divisions(x): return 1 / (x * x + 1) + x / 3 + np.divide(x, 2) + np.reciprocal(x * x + 2) + (x + 10) % 3.0 + np.remainder(x + 10, 3.0) + np.true_divide(x, x * x + 1)
@smooth("f8[2,2]")
def matrix_chain(x): return np.linalg.multi_dot([x, x, x]) + np.linalg.inv(x + 5 * np.eye(2)) @ x + np.linalg.solve(x + 5 * np.eye(2), x) + np.kron(x, x)[:2, :2] + np.tensordot(x, x, ([0], [1])) + np.vecdot(x, x)
