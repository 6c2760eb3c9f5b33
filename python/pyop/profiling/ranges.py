"""Show calls of a profile as ranges in other profilers: torch.profiler, NVTX and ITT.

The core calls the opener when a call begins, on the thread of the call, and when the call ends it calls the object that
the opener has returned (csrc/profile/events.h). Calls of one thread are nested, and so are their ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .rows import source_of

__all__ = ["opener_of"]

End = Callable[[], Any]
Tool = Callable[[str], Callable[[], End]]  # of the name of a range, what begins one


def _torch(name: str) -> Callable[[], End]:
    from torch.profiler import record_function

    text = f"pyop: {name}"  # it has no domains

    def begin() -> End:
        opened = record_function(text)
        opened.__enter__()
        return partial(opened.__exit__, None, None, None)

    return begin


def _nvtx(name: str) -> Callable[[], End]:
    from nvtx import get_domain

    domain = get_domain("pyop")
    attributes = domain.get_event_attributes(message=name)

    def begin() -> End:
        domain.push_range(attributes)
        return domain.pop_range  # type: ignore[no-any-return]

    return begin


def _itt(name: str) -> Callable[[], End]:
    import ittapi

    domain, text = ittapi.domain("pyop"), ittapi.string_handle(name)
    end = partial(ittapi.task_end, domain)

    def begin() -> End:
        ittapi.task_begin(domain, text)
        return end

    return begin


_TOOLS = {"torch": (_torch, "torch"), "nvtx": (_nvtx, "nvtx"), "itt": (_itt, "ittapi")}


class _Opener:
    """Begin ranges of several tools. Names are made once for each op, plan and instruction."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = tools
        # The owner is kept, so that its id stays its own: for the length of the profile, which keeps it anyway.
        self.known: dict[tuple[int, int], tuple[Any, list[Callable[[], End]]]] = {}

    def __call__(self, owner: Any, part: int) -> End:
        key = id(owner), part
        if key not in self.known:
            source = source_of(owner, 0, part)
            name = f"{source.kind} {source.name}"
            self.known[key] = owner, [tool(name) for tool in self.tools]
        ends = [begin() for begin in self.known[key][1]]
        return ends[0] if len(ends) == 1 else partial(_end, ends)


def _end(ends: list[End]) -> None:
    for end in reversed(ends):
        end()


def opener_of(tools: tuple[str, ...]) -> _Opener:
    """Return the opener for these tools, which are imported here, so that a missing one raises before the profile."""
    openers: list[Tool] = []
    for name in tools:
        if name not in _TOOLS:
            raise ValueError(f"ranges are shown to 'torch', 'nvtx' or 'itt', not to {name!r}: ranges=\"torch\"")
        tool, package = _TOOLS[name]
        try:
            tool("pyop")
        except ImportError as error:
            raise ImportError(
                f"ranges={name!r} needs the package {package!r}, which cannot be imported ({error}): "
                f"pip install 'pyop-core[{name}]'",
                name=package,
            ) from error
        openers.append(tool)
    return _Opener(openers)
