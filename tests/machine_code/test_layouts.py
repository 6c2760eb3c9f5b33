"""Loops on arrays of all layouts, under all error states: plainly, interpreted, as machine code."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest

import pyop

pytest.importorskip("llvmlite", reason="the jit extra is not installed")


def prefix(x, y):
    for k in range(1, len(x)):
        x[k] = x[k - 1] * 0.5 + y[k]
    return x


def backward(x, y):
    for k in range(len(x) - 1, 0, -3):
        x[k - 1] = x[k] + y[k - 1]
    return x.sum()


def nest(x, y):
    for i in range(len(y)):
        for j in range(i, len(y)):
            if y[j] > x[i]:
                x[i] = y[j]
            elif y[j] < 0:
                x[j % 7] = -x[i]
    return x


def until(x, y):
    k = 0
    s = 0.0
    while k < len(x) and s < 50.0:
        s += abs(x[k]) / (1.0 + y[k] * y[k])
        k += 1
    return s, k


def hashed(x, y):
    h = np.int64(1469598103934665603)
    for k in range(len(x)):
        h = (h ^ np.int64(x[k] * 1000.0)) * np.int64(1099511628211)
    return h


def divided(x, y):
    s = 0
    for k in range(len(x)):
        s += 100 // (k - 200 + int(x[k]))
    return s


def beyond(x, y):
    for k in range(len(x)):
        x[k] = y[k + 3]
    return x


def raising(x, y):
    for k in range(len(x)):
        x[k] = 1.0
        if y[k] > 0.999:
            raise ValueError("too large")
    return x


N = 400
NUMBERS = np.random.default_rng(3).random(2 * N + 1)


def layouts():
    z = NUMBERS.copy()
    a, b = z[:N], z[N : 2 * N]
    yield a.copy(), b.copy()
    yield a, a
    yield z[1 : N + 1], z[:N]  # they overlap
    z = NUMBERS.copy()
    yield z[: 2 * N : 2], z[1 : 2 * N : 2]
    yield z[N - 1 :: -1], b.copy()
    fixed = a.copy()
    fixed.flags.writeable = False
    yield fixed, b.copy()
    yield np.zeros(0), np.zeros(0)
    yield a.astype(np.float32), b.astype(np.float32)
    yield np.where(a > 0.9, np.nan, a), np.where(b > 0.9, -np.inf, b)
    yield a.astype(">f8"), b.astype(">f8")
    bytes_ = np.zeros(8 * N + 1, np.uint8)
    bytes_[1:].view(np.float64)[:] = a
    yield bytes_[1:].view(np.float64), b.copy()
    yield a.copy(), b[: N // 2].copy()


def outcome(f, given, errors):
    raised = result = None
    called = []
    with warnings.catch_warnings(record=True) as caught, np.errstate(all=errors, call=lambda *a: called.append(a[0])):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", pyop.RetraceWarning)
        try:
            result = f(*given)
        except Exception as error:
            raised = type(error), str(error).partition("\n")[0]
    leaves = result if isinstance(result, tuple) else (result,)
    found = [(type(x), np.asarray(x).tobytes()) for x in leaves if x is not None]
    told = {str(w.message) for w in caught}, set(called)
    return found, [x.tobytes() for x in given], raised, told, result is given[0]


@pytest.mark.parametrize("f", [prefix, backward, nest, until, hashed, divided, beyond, raising])
def test_layouts(f):
    ready = False
    for k, given in enumerate(layouts()):
        ways = [f, *(pyop.compile(f, machine_code=how) for how in ("off", "now"))]
        for errors in ("warn", "ignore", "raise", "call", "warn"):
            plain, interpreted, compiled = (outcome(g, [*layouts()][k], errors) for g in ways)
            assert compiled == interpreted, (k, errors)
            assert compiled == plain, (k, errors)
        try:
            with np.errstate(all="ignore"):
                plan = ways[2].plan_for(*given)
        except Exception:  # the function itself runs
            continue
        ready |= any(code.state == "ready" for _, code in plan._machine_code())
    assert ready or f is divided  # which raises while it is traced


def test_a_handler_of_a_signal_calls_the_loop_that_it_interrupts():
    def decay(x, n):
        total = x[0] * 0.0
        for k in range(n):
            total = total * 0.5 + x[k % 3]
        return total

    f = pyop.compile(decay, machine_code="now")
    x, found = np.ones(3), []
    want = decay(x, 3000)
    assert f(x, 3000) == want
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(f(x, 3000)))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        long = f(x, 20_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert long == want
    assert set(found) == {want}
