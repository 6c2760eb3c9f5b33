"""Find the target of a command: ``module:function``, and arguments as expressions."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

__all__ = ["UnusableTarget", "arguments_for", "find"]


class UnusableTarget(Exception):
    """Report an unusable target, in words for the command line."""


def find(target: str) -> Any:
    """Return the module, or its attribute of a dotted name. Modules of the current folder are found too."""
    module, colon, path = target.partition(":")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        subject: Any = importlib.import_module(module)
        for name in path.split(".") if colon else ():
            subject = getattr(subject, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnusableTarget(f"{target}: {error}") from error
    return subject


def arguments_for(target: str, found: Any, texts: list[str] | None) -> tuple[Any, ...]:
    """Return the examples, or random arrays as an op declares them; none for a function without parameters."""
    import inspect

    import numpy as np

    from .. import Op
    from ..checking import example_of

    if texts:
        try:
            return tuple([eval(text, {"np": np, "numpy": np}) for text in texts])
        except Exception as error:
            raise UnusableTarget(f"--example: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UnusableTarget(f"{target} is {type(found).__name__}, not a function: name one, {target}:FUNCTION")
    try:
        if isinstance(found, Op):
            return example_of(found, np.random.default_rng(0))
        needed = [p.name for p in inspect.signature(found).parameters.values() if p.default is p.empty and p.kind < 2]
    except (TypeError, ValueError) as error:
        raise UnusableTarget(f"{target}: {error}") from error
    if needed:
        wanted = " ".join("--example 'np.ones(3)'" for _ in needed)
        raise UnusableTarget(f"{target} takes {', '.join(needed)}: say with what to call it, {wanted}")
    return ()
