"""Show the progress of a long call (a map, a check, a plan): by a bar of rich, or by the caller's function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_of"]


def _nobody(done: int, total: int | None) -> None:
    pass


@contextmanager
def progress_of(
    progress: bool | Callable[[int, int | None], Any], name: str
) -> Iterator[Callable[[int, int | None], Any]]:
    """Yield a function to call with the number of items done and of all, where that is known."""
    if callable(progress):
        yield progress
        return
    if not isinstance(progress, bool):
        raise TypeError(f"progress= takes True, False or a function of (done, total), got {type(progress).__name__}")
    if not progress or not sys.stderr.isatty():
        yield _nobody
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield _nobody
        return
    with Progress(console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(bar, completed=done, total=total)
