"""The programs, one file a group, and the decorators that register them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

GROUPS = (
    "aliasing",
    "captured",
    "checks",
    "everyday",
    "exceptions",
    "foreign",
    "holders",
    "keepers",
    "inplace",
    "leaks",
    "numbers",
    "results",
    "threads",
    "views",
    "writes",
)


@dataclass(frozen=True)
class Entry:
    """A program: what it is called with, and what it may be asked.

    `function` is called with what `arguments` say; a `factory` makes the function first, and what to look at beside the
    arguments when a call is over. `smooth` programs are differentiated by their first argument. `without` are ways in
    which the program means something else, on purpose. `inside` is what NumPy raises and the program catches, where
    only numbers decide: a plan raises it when it runs, and says in which line.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    smooth: bool = False
    factory: bool = False
    without: tuple[str, ...] = ()
    inside: type[Exception] | None = None
    calls: tuple[int, ...] = (1, 2, 1)

    def made(self) -> tuple[Callable[..., Any], Callable[[], Any]]:
        """The function, fresh, and what shows its state."""
        return self.function() if self.factory else (self.function, lambda: None)


REGISTERED: dict[str, Entry] = {}


def program(*arguments: Any, needs: Sequence[str] = (), **options: Any) -> Callable[[Any], Any]:
    """Register a program. Texts such as ``"f8[3,2] step"`` are arrays (see `arguments.py`), functions make arguments.

    `needs` are packages without which there is no such program.
    """

    def register(function: Any) -> Any:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        assert name not in REGISTERED, name
        if all(importlib.util.find_spec(package) for package in needs):
            REGISTERED[name] = Entry(name, function, arguments, **options)
        return function

    return register


def smooth(*arguments: Any, **options: Any) -> Callable[[Any], Any]:
    """Register a program that has derivatives by its first argument, an array of floats."""
    return program(*arguments, smooth=True, **options)


def factory(*arguments: Any, **options: Any) -> Callable[[Any], Any]:
    """Register a function that makes (the program, a function that shows its state)."""
    return program(*arguments, factory=True, **options)


def every() -> dict[str, Entry]:
    for group in GROUPS:
        importlib.import_module(f"{__name__}.{group}")
    return REGISTERED
