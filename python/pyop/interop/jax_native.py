"""Let XLA itself call plans and functions, by the handler of `csrc/entry/xla_call.cpp`.

A plan without a step of Python is called on XLA's buffers, without a copy. A function of Python is called on copies of
them, on XLA's thread. A callback of JAX's own would put its arguments on a device there, and where all threads of XLA
do so with large arrays they wait for each other for ever.

An executable of XLA holds the address of a plan, and nothing tells when it is dropped. So whatever was handed to JAX is
kept as long as the process, with its wrapper: one entry for each op or function, kind of arguments and statics,
however often it is traced. The number of the process goes along, so that an executable from a file of JAX's cache is
never taken for one of this process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback

from .._core import Plan, _with_subnormals, _xla_target
from .jax_errors import CallFailed, words

__all__ = ["calls_python", "native_call", "on_cpu", "ordered_call", "python_call"]

_TARGET = "pyop_plan"
_lock = threading.Lock()
_process = np.int64(int.from_bytes(os.urandom(7), "little") + 1)
_registered = False
_kept: dict[int, Any] = {}


def calls_python(plan: Plan) -> bool:
    """Return whether a step of the plan is a call of a Python function."""
    return any(not plan._instruction(k)[0] for k in range(plan.report()["instructions"]))


def _target() -> None:
    """Register the handler with JAX, once."""
    global _registered
    with _lock:
        if not _registered:
            jax.ffi.register_ffi_target(_TARGET, _xla_target(int(_process), words), platform="cpu", api_version=1)
            _registered = True


def on_cpu() -> bool:
    """Return whether the current trace is for the CPU, which alone has the handler."""
    return bool(jax.default_backend() == "cpu")


def native_call(plan: Plan, results: Sequence[Any], of: Any) -> Callable[..., Any]:
    """Return the plan as a function of JAX's arrays, with a list of `results`; `of` is kept with it.

    Raises
    ------
    TypeError
        C cannot call the plan: it writes into an input, or sizes are not known.
    """
    address = plan.address
    _target()
    _kept[address] = (plan, of)
    call = jax.ffi.ffi_call(_TARGET, list(results), vmap_method="sequential")
    return lambda *arrays: call(*arrays, plan=np.int64(address), process=_process)


def python_call(
    function: Callable[[Sequence[Any]], Sequence[Any]], dtypes: Sequence[Any], results: Sequence[Any], method: str
) -> Callable[..., Any]:
    """Return a Python function of NumPy's arrays as one of JAX's arrays; it may run any number of times, or never.

    Under `vmap` it gets axes in front, by JAX's `method`.
    """
    if not on_cpu():
        return _callback(function, results, method)

    def run(arrays: tuple[Any, ...], targets: tuple[Any, ...]) -> None:
        try:
            results = function(arrays)
        except BaseException:
            del targets  # the traceback holds this frame, and is kept longer than XLA's memory
            raise
        for target, y in zip(targets, results, strict=True):
            np.copyto(target, y, casting="no")

    told = (run, tuple(map(np.dtype, dtypes)), tuple(np.dtype(y.dtype) for y in results))
    _target()
    _kept[id(told)] = told
    call = jax.ffi.ffi_call(_TARGET, list(results), vmap_method=method)
    return lambda *arrays: call(*arrays, function=np.int64(id(told)), process=_process)


def _callback(function: Callable[..., Any], results: Sequence[Any], method: str) -> Callable[..., Any]:
    run = raising(function)
    return lambda *arrays: jax.pure_callback(run, list(results), *arrays, vmap_method=method)


def ordered_call(function: Callable[..., Any], results: Sequence[Any]) -> Callable[..., Any]:
    """Return a function with effects as one of JAX's arrays: it runs once for each call, in program order."""
    run = raising(function)
    return lambda *arrays: io_callback(run, list(results), *arrays, ordered=True)


def raising(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for JAX's own callbacks that keeps the exception, and does not flush subnormal numbers."""

    def run(*arrays: Any) -> Any:
        try:
            return list(_with_subnormals(function, [np.asarray(x) for x in arrays]))
        except BaseException as error:
            raise CallFailed(words(error)) from error

    return run
