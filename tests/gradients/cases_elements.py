"""Elementwise functions and reductions."""

import numpy as np

from .case import A, C, c, case, f, group, i, named, only, rng, s, u

# --- ufuncs
group("ufuncs")
for x in (s(5, 7), c(5)):
    only(np.positive, x)
    for func in (np.negative, np.sin, np.cos, np.exp, np.square, np.sinh, np.cosh, np.tanh, np.tan):
        case(func, x)
    for func in (np.absolute, np.conjugate):
        case(func, x)
for func in (np.reciprocal, np.exp2, np.expm1, np.arctan, np.arcsinh):
    only(func, c(5))
for func in (np.reciprocal, np.exp2, np.expm1, np.arctan, np.arcsinh, np.fabs, np.sinc):
    case(func, s(5))
for func in (np.degrees, np.radians, np.deg2rad, np.rad2deg):
    case(func, s(5))
for func in (np.sqrt, np.log, np.log2, np.log10, np.log1p):
    case(func, f(5))
for func in (np.sqrt, np.log, np.log10, np.cbrt):
    only(func, c(5) if func is not np.cbrt else s(5))
for func in (np.arcsin, np.arccos, np.arctanh):
    case(func, u(5))
    only(func, c(3))
case(np.arccosh, f(5) + 1)
only(np.arccosh, c(4))
for func in (np.add, np.subtract, np.multiply, np.divide):
    for x, y in (
        (s(5, 7), s(5, 7)),
        (s(5, 7), s(7)),
        (s(5, 1), s(1, 7)),
        (s(), s(5, 7)),
        (c(5), c(5)),
        (s(5), c(1)),
        (s(0, 7), s(7)),
    ):
        case(func, x, y)
    case(func, s(5), 2.0)
    case(func, 2.0, s(5))
case(np.power, f(5), s(5))
case(np.power, f(5, 7), s(7))
for exponent in (0, 1, 2, 3, 2.5, -1):
    case(np.power, f(5), exponent)
case(np.power, s(5), 2)
case(np.power, 2.0, s(5))
only(np.power, c(5), 3)
only(np.power, c(5), c(5))
only(np.float_power, f(5), 3.0)
for func in (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2):
    case(func, s(5), s(5))
    case(func, s(5, 7), s(7))
for func in (np.arctan2, np.fmod, np.remainder, np.hypot):
    only(func, f(5) + 3, f(5))
only(np.copysign, s(5), s(5))
only(np.ldexp, s(5), i(5))
only(np.heaviside, s(5), s(5))
only(np.modf, s(5))
only(np.frexp, s(5))
only(np.divmod, f(5) + 3, f(5))
only(np.add, s(5), s(5), dtype=np.float64)

try:
    import scipy.special as sp
except ImportError:
    sp = None
if sp is not None:
    group("special")
    for name in (
        *("gamma", "gammaln", "loggamma", "rgamma", "psi", "erf", "erfc", "erfi", "erfcx", "dawsn", "ndtr", "log_ndtr"),
        *("expit", "log_expit", "entr", "exp2", "exp10", "expm1", "log1p", "cosm1", "cbrt", "exprel", "spence"),
        *("j0", "j1", "y0", "y1", "i0", "i1", "i0e", "i1e", "k0", "k1", "exp1", "expi"),
    ):
        only(getattr(sp, name), f(5))
    for name in ("erfinv", "ndtri", "logit", "ellipk", "ellipe"):
        only(getattr(sp, name), f(5, low=0.2, high=0.8))
    only(sp.erfcinv, f(5))
    for name in ("beta", "betaln", "poch", "xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox"):
        only(getattr(sp, name), f(5), f(1))
    only(sp.binom, f(5) + 5, f(5))
    named("loggamma", sp.loggamma, c(5) + 3, second=False)  # SciPy has no polygamma of complex numbers
    for name in ("gammainc", "gammaincc", "jv", "yv", "iv", "ive", "kv"):
        named(name, lambda x, name=name: getattr(sp, name)(1.5, x), f(5))
    named("betainc", lambda x: sp.betainc(1.5, 2.5, x), f(5, low=0.2, high=0.8))
    named("zeta", lambda x: sp.zeta(2.5, x), f(5))
    named("expn", lambda x: sp.expn(3, x), f(5))
    named("huber", lambda x: sp.huber(1.0, x), s(5))
    named("pseudo_huber", lambda x: sp.pseudo_huber(1.0, x), s(5))
    for name in ("sindg", "cosdg", "tandg", "cotdg", "k0e", "k1e", "owens_t", "wrightomega", "elliprf", "elliprc"):
        count = {"owens_t": 2, "elliprf": 3, "elliprc": 2}.get(name, 1)
        # What these derivatives are made of has no rule itself.
        last = name.startswith("ellipr")
        named(name, getattr(sp, name), *[f(5) for _ in range(count)], second=not last)
    for name in ("ber", "bei", "ker", "kei"):
        named(name, getattr(sp, name), f(5), second=False)
    for name in ("sici", "shichi", "fresnel", "airy", "itj0y0", "iti0k0"):
        named(name, getattr(sp, name), f(5))
    for name in ("powm1", "boxcox1p"):
        only(getattr(sp, name), f(5), f(5))
    for name in ("ellipeinc", "ellipkinc"):
        only(getattr(sp, name), f(5), f(5, low=0.2, high=0.8))
    only(sp.ellipkm1, f(5, low=0.2, high=0.8))
    only(sp.wofz, c(5))
    named("lambertw", lambda x: sp.lambertw(x), f(5))
    only(sp.voigt_profile, s(5), f(5), f(5))
    only(sp.ndtri_exp, -f(5))
    for name in ("hankel1", "hankel2", "hankel1e", "hankel2e", "jve", "yve", "kve", "struve", "modstruve"):
        named(name, lambda x, name=name: getattr(sp, name)(1.5, x), f(5))
    for name in ("kn", "yn"):
        named(name, lambda x, name=name: getattr(sp, name)(2, x), f(5))
    named("hyp0f1", lambda x: sp.hyp0f1(1.5, x), s(5))
    named("hyp1f1", lambda x: sp.hyp1f1(1.5, 2.5, x), s(5))
    named("hyp2f1", lambda x: sp.hyp2f1(0.5, 1.5, 2.5, x), u(5))
    named("hyperu", lambda x: sp.hyperu(0.5, 1.5, x), f(5))
    for name in ("chebyt", "chebyu", "hermite", "hermitenorm", "legendre", "laguerre"):
        named(name, lambda x, name=name: getattr(sp, "eval_" + name)(4, x), u(5))
    named("genlaguerre", lambda x: sp.eval_genlaguerre(4, 0.5, x), u(5))
    named("gegenbauer", lambda x: sp.eval_gegenbauer(4, 0.5, x), u(5))
    named("jacobi", lambda x: sp.eval_jacobi(4, 0.5, 1.5, x), u(5))
    low = f(5, low=0.2, high=0.8)
    for name in ("gammaincinv", "gammainccinv", "chdtri", "stdtrit"):
        named(name, lambda x, name=name: getattr(sp, name)(3.5, x), low)
    for name in ("chdtr", "chdtrc", "stdtr", "pdtr", "pdtrc"):
        named(name, lambda x, name=name: getattr(sp, name)(3.0, x), f(5))
    for name in ("betaincinv", "fdtr", "fdtrc"):
        named(name, lambda x, name=name: getattr(sp, name)(1.5, 2.5, x), low)
    for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc"):
        named(name, lambda x, name=name: getattr(sp, name)(2, 5, x), low)
    for name in ("gdtr", "gdtrc"):
        named(name, lambda a, x, name=name: getattr(sp, name)(a, 2.5, x), f(5), f(5))
    named("inv_boxcox1p", lambda x: sp.inv_boxcox1p(x, 0.5), f(5))
    named("inv_boxcox", lambda x: sp.inv_boxcox(x, 0.5), f(5))

# --- complex numbers, conversions, clipping
group("elementwise")
case(np.real, c(5))
case(np.imag, c(5))
case(np.real, s(5))
case(np.angle, c(5))
only(np.angle, c(5), deg=True)
only(np.real_if_close, s(5))
case(np.clip, s(5, 7), -0.8, 0.9)
only(np.clip, s(5, 7), s(7), 0.9)
only(np.clip, s(5, 7), None, s(5, 1))
case(np.nan_to_num, s(5))
only(np.unwrap, s(7) * 6)
only(np.copy, s(5))
only(np.full_like, s(5), s())
named("astype", lambda x: x.astype(complex) * 1j, s(5))
named("powers", lambda x: x**2 + x**3.0 + x**-1, f(5))
named("floor of a sum", lambda x: x * np.floor(x * 3) + np.sign(x), s(5))

# --- reductions
group("reductions")
for func in (np.sum, np.mean, np.prod, np.max, np.min, np.amax, np.amin, np.var, np.std):
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}, {"axis": -1}):
        case(func, A, **options)
    only(func, s(3, 5, 7), axis=(0, 2))
for func in (np.sum, np.mean, np.prod, np.var, np.std):
    case(func, C) if func not in (np.var, np.std) else only(func, C)
    only(func, C, axis=1)
for func in (np.sum, np.mean, np.prod, np.var, np.max):
    more = {"initial": -9.0} if func is np.max else {}
    only(func, A, axis=1, where=np.arange(35).reshape(5, 7) % 3 > 0, **more)
only(np.sum, A, initial=3.0)
only(np.prod, A, axis=0, initial=3.0)
only(np.prod, np.array([2.0, 0.0, 3.0]))
only(np.prod, np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0]]), axis=1)
case(np.var, A, axis=0, ddof=1)
case(np.std, A, axis=0, ddof=1)
only(np.sum, s(0, 7), axis=0)
only(np.prod, s(0, 7), axis=0)
only(np.sum, s())
case(np.cumsum, A, axis=0)
case(np.cumsum, A)
only(np.cumsum, C, axis=1)
for axis in (None, 0, -1):
    only(np.cumprod, A, axis=axis)
only(np.cumprod, C, axis=1)
only(np.cumprod, np.array([2.0, 0.0, 3.0, 0.0, 4.0]))
if hasattr(np, "cumulative_sum"):
    only(np.cumulative_sum, A, axis=1, include_initial=True)
    only(np.cumulative_prod, A, axis=0)
only(np.ptp, A, axis=1)
N = np.where(rng.random((5, 7)) < 0.2, np.nan, s(5, 7))
N[:2] = s(2, 7)
for func in (np.nansum, np.nanmean, np.nanprod, np.nanvar, np.nanstd, np.nanmax, np.nanmin):
    only(func, A, axis=0)
only(np.nancumsum, A, axis=0)
only(np.nancumprod, A, axis=0)
only(np.average, A, axis=0)
only(np.average, A, axis=1, weights=f(7))
only(np.average, A, weights=f(5, 7))
for method in (
    np.add.reduce,
    np.multiply.reduce,
    np.maximum.reduce,
    np.minimum.reduce,
    np.logaddexp.reduce,
    np.add.accumulate,
    np.multiply.accumulate,
):
    named(f"{method.__self__.__name__}.{method.__name__}", method, A)
    named(f"{method.__self__.__name__}.{method.__name__} axis=1", lambda x, method=method: method(x, axis=1), A)
named("add.reduce axis=None", lambda x: np.add.reduce(x, axis=None, keepdims=True), A)
named("logaddexp.reduce kept", lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), A)
named("multiply.outer", np.multiply.outer, s(5), s(7))
named("where in sum", lambda x: np.sum(x, where=np.arange(7) > 3), A)
