"""Pickle the callable for the workers, once for each worker, and decide whether its calls may travel."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numpy as np

from .._core import CompiledFunction, Op, Plan
from .failures import cloudpickle_dumps
from .memory import Memory, Packed, pack

__all__ = ["Call", "Callee", "may_travel", "stateful_names"]

Call = tuple[tuple[Any, ...], dict[str, Any]]  # arguments by place and by name


def may_travel(function: Any, calls: list[Call]) -> bool:
    """Return whether all calls may be made by other processes, and again if one of these dies.

    Stateful functions may not, nor those that write into their arguments, nor those that cannot be traced.
    """
    if isinstance(function, Op):
        return not function.stateful
    if isinstance(function, Plan):
        return _is_pure(function)
    if not isinstance(function, CompiledFunction):
        raise TypeError(f"map takes plans, compiled functions and ops, got {type(function).__name__} {function!r:.80}")
    seen = set()
    for args, named in calls:
        # It is another plan for other dtypes and shapes, and may be for other values.
        key = tuple([(name, *_known(x)) for name, x in (*enumerate(args), *named.items())])
        if None in [part for each in key for part in each] or key not in seen:
            try:
                plan = function.plan_for(*args, **named)
            except Exception:
                return False  # the call itself says what is wrong
            if not _is_pure(plan):
                return False
            seen.add(key)
    return True


def _is_pure(plan: Any) -> bool:
    return isinstance(plan, Plan) and not plan._writes and not any(node.stateful for node in plan.nodes)


def stateful_names(function: Any) -> str:
    """Return the names of the stateful functions that it calls, or else its own name."""
    nodes = [node.name for node in function.nodes if node.stateful] if isinstance(function, Plan) else []
    return ", ".join(dict.fromkeys(nodes)) or getattr(function, "__name__", None) or f"{function!r:.80}"


def _known(x: Any) -> tuple[Any, ...]:
    return (x.dtype, x.shape) if type(x) is np.ndarray else (None,)


class Callee:
    """Hold a function in the form in which it is sent. `close` when no task is on the way."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._memory = Memory()
        dumps = cloudpickle_dumps()
        try:
            self._whole = pack(function, dumps=dumps)
        except Exception as error:
            error.add_note(f"  while {function!r:.80} was pickled for the workers of map{_remedy(dumps)}")
            raise
        digest = hashlib.sha256(self._whole.pickled)
        for each in self._whole.inline:
            digest.update(each)
        self.digest = digest.hexdigest()
        self._shared: Packed | None = None

    def whole(self) -> Packed:
        """Return the function to be sent within a task."""
        return self._whole

    def shared(self) -> Packed:
        """Return the function by an address in this process's memory, if it is large, for workers of this machine."""
        if self._shared is None:
            self._shared = pack(_Sealed(self._whole), self._memory.fd, self._memory.address)
        return self._shared

    def close(self) -> None:
        self._memory.close()


class _Sealed:
    """Nest a pickle within a pickle, as a buffer; unpickling returns the inner object."""

    def __init__(self, packed: Packed) -> None:
        self.packed = packed

    def __reduce__(self) -> Any:
        return _opened, tuple(pickle.PickleBuffer(each) for each in (self.packed.pickled, *self.packed.inline))


def _opened(pickled: Any, *buffers: Any) -> Any:
    return pickle.loads(pickled, buffers=buffers)


def _remedy(dumps: Any) -> str:
    return (
        ""
        if dumps is not None
        else "; lambdas, closures and what __main__ defines need cloudpickle: pip install cloudpickle"
    )
