"""Plans that XLA calls itself, by the handler of `csrc/entry/xla_call.cpp`: no callback into Python, no copy.

An executable of XLA holds the address of a plan, and nobody tells when it is dropped: a plan that was handed to JAX is
kept as long as the process. The number of the process goes along, so that an executable from a file of JAX's cache is
never taken for one of this process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._core import Plan, _xla_target
from .jax_errors import words

__all__ = ["calls_python", "native_call"]

_TARGET = "pyop_plan"
_lock = threading.Lock()
_process = np.int64(int.from_bytes(os.urandom(7), "little") + 1)
_registered = False
_plans: dict[int, Plan] = {}


def calls_python(plan: Plan) -> bool:
    """Whether a step of the plan is a call of a Python function."""
    return any(not plan._instruction(k)[0] for k in range(plan.report()["instructions"]))


def native_call(plan: Plan, results: Sequence[Any]) -> Callable[..., Any]:
    """The plan as a function of JAX's arrays, whose results are `results`: a list.

    Raises
    ------
    TypeError
        C cannot call the plan: it writes into an input, or sizes are not known.
    """
    global _registered
    address = plan.address
    with _lock:
        if not _registered:
            jax.ffi.register_ffi_target(_TARGET, _xla_target(int(_process), words), platform="cpu", api_version=1)
            _registered = True
        _plans[address] = plan
    call = jax.ffi.ffi_call(_TARGET, list(results), vmap_method="sequential")
    return lambda *arrays: call(*arrays, plan=np.int64(address), process=_process)
