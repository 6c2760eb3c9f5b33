"""What is called on the workers: its pickle, which travels once a worker; whether a call may be repeated."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

from .._core import CompiledFunction, Op, Plan
from .memory import Memory, Packed, pack

__all__ = ["Callee", "purity_of"]


def purity_of(function: Any) -> bool | None:
    """Whether a call may be made twice; None: nobody has said so (a compiled function is whatever Python it is)."""
    if isinstance(function, Plan):
        return not any(node.stateful for node in function.nodes)
    if isinstance(function, Op):
        return not function.stateful
    if isinstance(function, CompiledFunction):
        return None
    raise TypeError(f"map is of plans, compiled functions and ops, got {type(function).__name__} {function!r:.80}")


class Callee:
    """A function as it travels. `close` when nobody is on the way any more."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._memory = Memory()
        dumps = _dumps()
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


def _dumps() -> Any:
    """Functions of ``__main__``, lambdas and closures go by cloudpickle, where it is installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle.dumps


def _remedy(dumps: Any) -> str:
    return (
        ""
        if dumps is not None
        else "; lambdas, closures and what __main__ defines need cloudpickle: pip install cloudpickle"
    )
