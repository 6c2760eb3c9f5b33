"""Exact kernels in plans: NumPy's bits, warnings and errors, for any argument, layout and dtype."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from native_checks import assert_same, observed

import pyop
import pyop.debug

NAMES = list(pyop.debug.exact_kernels()) or ["sin", "cos", "exp", "log", "exp2", "log2"]
TINY = np.finfo(float).tiny


def near_multiples(step, up_to):
    """The doubles nearest to multiples of a step, and their neighbours."""
    k = np.unique(np.geomspace(1, up_to / step, 400).astype(np.int64))
    x = (k * np.longdouble(step)).astype(float)
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, 0)])


SPECIAL = np.concatenate(
    [
        [0.0, np.inf, np.nan, TINY, TINY / 2, 5e-324, 2 * TINY, 1.0, 2.0, 0.5, 1e300, np.finfo(float).max],
        np.frombuffer(np.uint64([0x7FF8000000001234, 0x7FF0000000000001]).tobytes(), float),  # payloads, signalling
        [708.0, 709.0, 709.7, 709.8, 745.0, 746.0, 708.4, 1e5, 2.0**26, 2.0**27, 105414350.0, 2.0**-26, 2.0**-27],
        [np.nextafter(1, 0), np.nextafter(1, 2), 0.708984375, 1.41796875, 1 / np.sqrt(2), np.sqrt(2)],
        near_multiples(np.pi / 2, 1e8),
        near_multiples(np.log(2), 700),
        [1021.0, 1022.0, 1022.5, 1023.0, 1023.5, 1024.0, 1074.0, 1075.0, 1076.0],
        np.arange(1, 130) / 128.0,
        2.0 ** np.arange(-1074, 1024, 7),
    ]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def compiled(name):
    ufunc = getattr(np, name)
    return ufunc, pyop.trace(ufunc, pyop.Spec("float64", ["n"])).compile()


def draws(rng, n):
    """Arguments of every size."""
    yield rng.uniform(-10, 10, n)
    yield rng.uniform(0.5, 2, n)
    yield rng.uniform(-700, 700, n)
    yield rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
    yield rng.integers(0, 2**64, n, np.uint64).view(float)  # any bits at all


@pytest.mark.parametrize("name", NAMES)
def test_random_arguments(name):
    ufunc, plan = compiled(name)
    rng = np.random.default_rng(11)
    for n in (1, 2, 3, 4, 5, 7, 64, 511, 512, 513, 1027, 40_000):
        for x in draws(rng, n):
            with np.errstate(all="ignore"):
                assert plan(x).tobytes() == ufunc(x).tobytes()


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_random_arguments_campaign(name):
    ufunc, plan = compiled(name)
    with np.errstate(all="ignore"):
        for seed in range(100):
            for x in draws(np.random.default_rng([17, seed]), 100_000):
                assert plan(x).tobytes() == ufunc(x).tobytes(), seed


@pytest.mark.parametrize("name", NAMES)
def test_special_arguments(name):
    ufunc, plan = compiled(name)
    with np.errstate(all="ignore"):
        assert plan(SPECIAL).tobytes() == ufunc(SPECIAL).tobytes()
    for x in SPECIAL[: len(SPECIAL) // 40 * 40].reshape(40, -1):
        assert_same(observed(plan, x), observed(ufunc, x))
    for x in SPECIAL[:80]:  # alone, and beside ordinary ones
        for y in (np.array([x]), np.array([1.5, 0.25, x, 1.25, 0.75])):
            assert_same(observed(plan, y), observed(ufunc, y))
            with np.errstate(all="raise"):
                assert_same(observed(plan, y), observed(ufunc, y))


def layouts(x):
    apart = np.empty(2 * len(x))
    apart[::2] = x
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(float)
    shifted[:] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    yield from (x, apart[::2], x[::-1], shifted, fixed, x.astype(">f8"), x[:0], np.broadcast_to(x[:1], x.shape))
    yield np.asfortranarray(x[:900].reshape(30, 30))
    yield x[:900].reshape(30, 30)[1:-1, 1:-1]
    yield x[0].reshape(())


@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_dtypes(name):
    ufunc = getattr(np, name)
    x = np.random.default_rng(5).uniform(0.1, 20, 1200)
    for a in [*layouts(x), *(x.astype(dtype) for dtype in ("f4", "f2", "c16", "i4", "u1", "?"))]:
        assert_same(observed(pyop.compile(ufunc), a), observed(ufunc, a))
    long = x.astype(np.longdouble)  # whose bytes are not all of the number
    assert np.array_equal(pyop.compile(ufunc)(long), ufunc(long))


@pytest.mark.parametrize("name", NAMES)
def test_over_its_own_argument(name):
    ufunc, plan = compiled(name)
    want = np.random.default_rng(6).uniform(0.1, 20, 3000)
    x = want.copy()
    assert plan(x, out=x) is x
    assert x.tobytes() == ufunc(want).tobytes()

    @pyop.compile
    def over(x):
        y = x * 1.0
        getattr(np, name)(y, out=y)
        return y

    assert over(want).tobytes() == ufunc(want).tobytes()


def test_in_groups_gradients_and_threads():
    x = np.random.default_rng(7).uniform(0.1, 10, 300_000)

    def f(x):
        return np.exp(-x) * np.sin(3 * x) + np.log(x) * np.cos(x)

    for threads in (1, 2):
        plan = pyop.trace(f, pyop.Spec("float64", ["n"])).compile(threads=threads)
        assert plan(x).tobytes() == f(x).tobytes()
    gradient = pyop.compile(pyop.grad(lambda x: np.sum(np.sin(x))))
    assert gradient(x).tobytes() == np.cos(x).tobytes()


def test_loops_on_tapes():
    @pyop.compile
    def f(x):
        for _ in range(1000):
            x = np.sin(x) + np.cos(x) * 0.5
        return x

    for x in (np.array(0.3), np.array([0.3, 1.5, -0.0, 2e8, 0.7])):
        want = x
        for _ in range(1000):
            want = np.sin(want) + np.cos(want) * 0.5
        assert np.asarray(f(x)).tobytes() == np.asarray(want).tobytes()


PROGRAM = """
    import json, numpy as np, pyop, pyop.debug
    x = np.random.default_rng(0).uniform(-10, 10, 20_000)
    {before}
    with np.errstate(all="ignore"):
        same = {{name: pyop.compile(getattr(np, name))(x).tobytes() == getattr(np, name)(x).tobytes()
                 for name in ("sin", "cos", "exp", "log", "exp2", "log2")}}
    print(json.dumps([pyop.debug.exact_kernels(), same]))
"""


def program(before="", **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).format(before=before)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states, same = json.loads(done.stdout.splitlines()[-1])
    assert all(same.values()), same
    return states


def glibc():
    return hasattr(os, "confstr") and "glibc" in str(os.confstr("CS_GNU_LIBC_VERSION"))


def test_they_are_used():
    states = program()
    if not states or not glibc():
        pytest.skip("no exact kernels for this processor and libm")
    # sin and cos are libm's in every NumPy; others may be NumPy's own on newer processors.
    assert states["sin"] == states["cos"] == "on"


def test_left_alone():
    assert set(program(PYOP_EXACT_KERNELS="0").values()) <= {"off: PYOP_EXACT_KERNELS=0"}


def test_other_directions_of_rounding():
    for mode in (0x400, 0x800, 0xC00):  # FE_DOWNWARD and so on, on x86
        if not pyop.debug.exact_kernels():
            pytest.skip("no exact kernels for this processor")
        program(f"import ctypes; pyop.compile(np.sin)(x); ctypes.CDLL(None).fesetround({mode})")


WRONG_SINE = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <math.h>
    double sin(double x) {
        static double (*next)(double);
        if (!next) next = (double (*)(double))dlsym(RTLD_NEXT, "sin");
        const double y = next(x);
        return fabs(x) > 5 && fabs(x) < 6 ? nextafter(y, 2) : y;
    }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_libm_that_breaks_its_bound_is_found_out(tmp_path):
    if not glibc() or not pyop.debug.exact_kernels() or pyop.build_config()["build"].get("sanitize"):
        pytest.skip("no exact kernels for this processor and libm, or libraries cannot be put before others")
    source, library = tmp_path / "sine.c", tmp_path / "libsine.so"
    source.write_text(textwrap.dedent(WRONG_SINE))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lm"], check=True)
    states = program(LD_PRELOAD=str(library))
    assert states["sin"] == "off: libm's results are not within its bound"
    assert states["cos"] == "on"


def test_flags_that_were_up_stay_out_of_it():
    f = pyop.compile(np.sin)
    x = np.linspace(0.1, 30, 2000)
    f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            np.log(np.array([0.0, -1.0]))
        assert f(x).tobytes() == np.sin(x).tobytes()
