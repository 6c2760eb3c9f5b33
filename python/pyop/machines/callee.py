"""What is called on the workers: its pickle, which travels once a worker; whether calls of it may travel."""

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
    """Whether all calls may be made by other processes, and again if one of these dies.

    Not what is stateful, what writes into the arguments, and what cannot be traced, of which nobody knows.
    """
    if isinstance(function, Op):
        return not function.stateful
    if isinstance(function, Plan):
        return _is_pure(function)
    if not isinstance(function, CompiledFunction):
        raise TypeError(f"map is of plans, compiled functions and ops, got {type(function).__name__} {function!r:.80}")
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
    """What it calls that is stateful, by name, or else its own name."""
    nodes = [node.name for node in function.nodes if node.stateful] if isinstance(function, Plan) else []
    return ", ".join(dict.fromkeys(nodes)) or getattr(function, "__name__", None) or f"{function!r:.80}"


def _known(x: Any) -> tuple[Any, ...]:
    return (x.dtype, x.shape) if type(x) is np.ndarray else (None,)


class Callee:
    """A function as it travels. `close` when nobody is on the way any more."""

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
        """To be sent with a task."""
        return self._whole

    def shared(self) -> Packed:
        """The same by an address in this process's memory, if it is large, for workers of this machine."""
        if self._shared is None:
            self._shared = pack(_Sealed(self._whole), self._memory.fd, self._memory.address)
        return self._shared

    def close(self) -> None:
        self._memory.close()


class _Sealed:
    """A pickle within a pickle, as a buffer: what unpickles it gets what is in it."""

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
