"""Watch generators of random numbers: tell whether any numbers were drawn, and take that back."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np

from .._core import generator_memory
from .same import same

__all__ = ["GAUSSIAN", "Generator", "Reached", "generator_of"]

# What draws a normal number from `np.random` may leave a second one for the next call, and nothing else changes then.
GAUSSIAN = frozenset(
    ("normal", "randn", "standard_normal", "lognormal", "multivariate_normal", "standard_t", "vonmises")
)
_WORDS = 624 * 4 + 4  # of the state of a Mersenne twister


class Generator:
    """Hold the state of a generator, which `get` gives and `put` sets. The label is for the error."""

    def __init__(self, label: str, owner: Any, get: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        self.label, self.owner = label, owner
        self.now, self.put = get, put
        self.before = get()

    def changed(self) -> bool:
        """Return whether its state is another than before the trace."""
        return self.differs(self.before)

    def differs(self, state: Any) -> bool:
        """Return whether its state is another than `state`."""
        now = self.now()
        return bool(now != state) if type(now) in (bytes, tuple) else not same(now, state)

    def look_closely(self) -> None:
        """Compare all of the state from here on, though it takes time to ask for that."""


class _Twister(Generator):
    """Hold the state of ``np.random`` by its memory: NumPy gives its 624 words one by one."""

    def __init__(self, owner: Any, bits: Any) -> None:
        memory = generator_memory(bits.capsule, _WORDS)  # bits.ctypes would take a tenth of a millisecond to make

        def put(words: bytes) -> None:
            time.sleep(0)  # threads that wait to draw do it now, rather than during the trace that comes next
            memory[:] = words

        super().__init__("np.random", owner, memory.tobytes, put)

    def look_closely(self) -> None:
        self.now, self.put = lambda: self.owner.get_state(legacy=False), self.owner.set_state
        self.before = self.now()


def _state_of(label: str, owner: Any, bits: Any) -> Generator:
    def put(state: Any) -> None:
        bits.state = state

    return Generator(label, owner, lambda: bits.state, put)


def global_generators() -> list[Generator]:
    """Return the generator of ``np.random``, if it is loaded; functions of other libraries draw from it, too."""
    if "numpy.random" not in sys.modules:
        return []
    owner = np.random.mtrand._rand
    bits: Any = owner._bit_generator
    return [_Twister(owner, bits) if type(bits) is np.random.MT19937 else _state_of("np.random", owner, bits)]


def generator_of(label: str, x: Any) -> Generator | None:
    """Return the `Generator` of an object that is one, of a method of one, or of the module ``random``; else None."""
    if type(x) in (BuiltinMethodType, MethodType):
        x = x.__self__
    if (random := sys.modules.get("random")) is not None:  # else nobody has a generator of its
        x = random._inst if x is random else x
        if isinstance(x, random.Random):
            return Generator(label, x, x.getstate, x.setstate)
    if "numpy.random" not in sys.modules:
        return None
    if isinstance(x, np.random.RandomState):
        return Generator(label, x, lambda: x.get_state(legacy=False), x.set_state)
    if isinstance(x, np.random.Generator):
        return _state_of(label, x, x.bit_generator)
    return _state_of(label, x, x) if isinstance(x, np.random.BitGenerator) else None


class Reached:
    """Hold the generators that a function can reach, as they are before a trace."""

    def __init__(self) -> None:
        self.generators: list[Generator] = global_generators()

    def found_generators(self) -> bool:
        """Add the generator of ``np.random`` if that was loaded in the meantime; return whether it was.

        NumPy imports `np.random` when it is first asked for, which may have been by the function that was traced.
        """
        if self.generators and self.generators[0].label == "np.random":
            return False
        late = global_generators()
        self.generators[:0] = late
        return bool(late)

    def drawn(self) -> list[str]:
        """Return the labels of the generators whose state is not as it was."""
        return [generator.label for generator in self.generators if generator.changed()]

    def generator_states(self) -> list[Any]:
        """Return the states of the generators, as they are now."""
        return [generator.now() for generator in self.generators]

    def restore_generators(self, states: list[Any] | None = None) -> None:
        """Put the generators back as they were before the trace, or at `states`."""
        before = [generator.before for generator in self.generators] if states is None else states
        for generator, state in zip(self.generators, before, strict=True):
            if generator.differs(state):
                generator.put(state)
