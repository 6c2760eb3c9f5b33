"""What makers of statements draw from: the variables of a program as it runs so far."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Maker = Callable[["Draw"], str]
KINDS: dict[str, tuple[float, bool, Maker]] = {}


def kind(weight: float, *, smooth: bool = True) -> Callable[[Maker], Maker]:
    """Register a maker of statements; only `smooth` ones are in programs that are differentiated."""

    def register(maker: Maker) -> Maker:
        KINDS[maker.__name__] = weight, smooth, maker
        return maker

    return register


class Draw:
    """Random choices among the variables."""

    def __init__(self, r: random.Random, variables: dict[str, Any], smooth: bool) -> None:
        self.variables, self.smooth, self.defined = variables, smooth, {*variables}
        self.pick, self.below, self.random = r.choice, r.randrange, r.random
        self.count = 0

    def named(self, accept: Callable[[Any], Any]) -> list[str]:
        every = [name for name in self.variables if name not in self.defined and name != "__builtins__"]
        return [name for name in every if accept(self.variables[name])]

    def array(self, accept: Callable[[Any], Any] = lambda a: True) -> str:
        """A variable that is an array, a recent one more often; one that is accepted, if there is any."""
        every = self.named(lambda a: isinstance(a, np.ndarray) and a.dtype != object)
        found = [name for name in every if accept(self.variables[name])] or every
        return self.pick(found[-3:] if self.random() < 0.5 else found)

    def written(self) -> str:
        """An array to write to: seldom an argument."""
        mine = [name for name in self.named(lambda a: type(a) is np.ndarray) if name[0] == "v"]
        if mine and self.random() < 0.85:
            return self.pick(mine[-4:] if self.random() < 0.5 else mine)
        return self.array(lambda a: a.flags.writeable)

    def ranked(self, ndim: int = 1) -> str:
        return self.array(lambda a: a.ndim >= ndim)

    def new(self) -> str:
        return f"v{len([name for name in self.variables if name[0] == 'v'])}"

    def beside(self, name: str) -> str:
        """What broadcasts with an array: another, a part of one, a number."""
        shape = np.shape(self.variables[name])
        fits = self.named(lambda a: isinstance(a, np.ndarray | np.generic) and broadcasts(np.shape(a), shape))
        if fits and self.random() < 0.6:
            return self.pick(fits)
        return self.number() if self.random() < 0.7 else f"{name} * {self.number()}"

    def number(self) -> str:
        if self.smooth:
            return self.pick(["2.0", "0.5", "-1.5", "3", "1"])
        return self.pick(["2", "3", "-1", "0.5", "2.0", "100", "1.5", "True", "1j", "np.float32(1.5)", "np.int8(3)"])

    def key(self, name: str) -> str:
        """An index of all kinds."""
        a = self.variables[name]
        if not a.ndim:
            return self.pick(["...", "()"])
        keys = ["0", "-1", "1:", ":-1", "::2", "::-1", "...", ":", "[0, -1]", "1:3", "0:0", "None", "..., 0", "[0, 0]"]
        if a.ndim > 1:
            keys += [":, 0", "0, 0", "1:, ::-1", "[0, 1], [1, 0]", ":, [0]", "-1, 0"]
        masks = self.named(lambda m: isinstance(m, np.ndarray) and m.dtype == bool and m.shape == a.shape)
        keys += [f"{name} > {self.pick(['0', '0.5'])}", *masks]
        return self.pick(keys)

    def basic_key(self, name: str) -> str:
        a = self.variables[name]
        if not a.ndim:
            return self.pick(["...", "None"])
        keys = ["1:", ":-1", "::2", "::-1", "...", ":", "1:3", "None", "..., 0", "0:1"]
        return self.pick(keys + ([":, 0", "0", "1:, ::-1", "-1", ":, 1:"] if a.ndim > 1 else []))


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b), strict=False))
