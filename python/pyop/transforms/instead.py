"""Compile a derivative at arrays where the function writes, also into arrays that it makes.

Tensors cannot follow that, a compiled function can. So the derivative is compiled, with one warning, and stays so.

The function has then begun once in vain. State that it has changed and generators that it has drawn from are restored.
If an array that it was given has changed, the refusal stands.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from threading import local
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import _core
from .._core import Tensor
from .._tree import flatten, leaf_types
from ..gradients.table import NoRule
from ..graph.cells import warn
from ..refusals import was_refused
from ..tracing.captured import Watch
from .eager import Eager

__all__ = ["Instead"]

_REMEDY = "compile the derivative, which follows writes: pyop.compile(pyop.grad(f))"
_REFUSED: Any = object()
_running = local()
_writing: WeakKeyDictionary[CodeType, bool] = WeakKeyDictionary()
_MOST = 100  # functions that are looked at
_CALM = ("math", "numpy", "pyop", "scipy")  # modules whose functions write where they are told to, by what _WRITERS has


class Instead:
    """Call a compiled derivative in place of one at arrays, once the function was found to write."""

    __slots__ = ("compiled", "done", "f", "writes")

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.compiled: Any = None
        self.writes: bool | None = None
        self.done = False  # it has done without

    def call(
        self, made: Callable[..., Any], transformed: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the derivative, by `made` on Tensors or compiled."""
        if self.compiled is not None and self not in _compiled_now() and not _is_inside(args, kwargs):
            return self._run_again(args, kwargs)
        kept = self._kept(args, kwargs)
        state = Watch(self.f, []) if self.writes and not self.done else None
        try:
            result = made(Eager, args, kwargs)
        except Exception as error:
            if state is not None and was_refused(error):
                state.restore()
                state.restore_generators()
            # No frame of the traceback may hold the error: what is differentiated would live on with it.
            result = self._after(error, kept, transformed, args, kwargs)
            if result is _REFUSED:
                raise
            return result
        self.done = True
        return result

    def _kept(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Return the arrays that the function may write into, each with a copy."""
        if self.done:  # nothing is copied call by call
            return []
        if self.writes is None:
            self.writes = _writes(self.f)
        return [(x, x.copy()) for x in _arrays(args, kwargs)] if self.writes else []

    def _after(
        self, error: Exception, kept: Any, transformed: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """Return the derivative after a refusal, by compiling it; or _REFUSED."""
        if (
            not self.writes  # what else takes numbers out of the record is refused, however it is run
            or not was_refused(error)
            or isinstance(error, NoRule)
            or self in _compiled_now()
            or _is_inside(args, kwargs)
        ):
            return _REFUSED
        if self.done or any(_differ(x, before) for x, before in kept):
            error.add_note(f"an argument may have been written before that: {_REMEDY}")
            return _REFUSED
        from .. import RetraceWarning, compile  # noqa: A004

        compiled = compile(transformed)
        try:
            result = self._run(compiled, args, kwargs)
        except Exception as other:
            if "in place" in str(error):
                error.add_note(f"compiling the derivative instead fails, too: {type(other).__name__}: {other}")
            failed = True
        else:
            failed = False
        if failed:
            self._run_plainly(error, kept, args, kwargs)
            return _REFUSED
        said = str(error).partition(":")[0].partition(", which is not recorded")[0]
        warn(
            f"{getattr(self.f, '__name__', 'a function')} cannot be differentiated while it runs ({said}), so its "
            f"derivative is compiled; to have that from the start {_REMEDY}",
            RetraceWarning,
        )
        self.compiled = compiled
        return result

    def _run_plainly(
        self, error: Exception, kept: list[tuple[Any, Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Run the function without a derivative, to raise its own exception; else restore its state."""
        state = Watch(self.f, [])
        try:
            self.f(*args, **kwargs)
        except Exception as own:
            if own.__context__ is error:  # which is ours
                own.__context__ = None
            raise
        state.restore()
        state.restore_generators()
        for x, before in kept:
            x[...] = before

    def _run_again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run what was compiled in an earlier call."""
        try:
            return self._run(self.compiled, args, kwargs)
        except Exception as error:
            if was_refused(error) and not isinstance(error, NoRule):
                self._run_plainly(error, [(x, x.copy()) for x in _arrays(args, kwargs)], args, kwargs)
            raise

    def _run(self, compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the compiled derivative; if that runs the function itself, it must not come back here."""
        _compiled_now().add(self)
        try:
            return compiled(*args, **kwargs)
        finally:
            _compiled_now().discard(self)


def _compiled_now() -> set[Instead]:
    """Return the instances whose compiled derivatives run on this thread."""
    running: set[Instead] | None = getattr(_running, "instances", None)
    if running is None:
        running = _running.instances = set()
    return running


def _is_inside(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether this derivative is part of another one, or something is recorded around it."""
    return Tensor in leaf_types((args, kwargs)) or _core.transformations_running() > 0 or _core.watching()


def _arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [x for x in flatten((args, kwargs))[0] if isinstance(x, np.ndarray) and x.flags.writeable]


def _differ(x: Any, before: Any) -> bool:
    return bool(x.shape != before.shape or x.dtype != before.dtype or x.tobytes() != before.tobytes())


def _writes(f: Any) -> bool:
    """Return whether the code of a function, or of one that it names, could write into an array argument."""
    waiting, seen = [f], set[int]()
    while waiting:
        function = waiting.pop()
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, FunctionType):
            return True
        code = function.__code__
        if id(code) in seen:
            continue
        seen.add(id(code))
        if len(seen) > _MOST or _writes_itself(code):
            return True
        named = [function.__globals__.get(name) for name in code.co_names]
        named += [cell.cell_contents for cell in function.__closure__ or () if _is_full(cell)]
        for module in [x for x in named if isinstance(x, ModuleType) and x.__name__.partition(".")[0] not in _CALM]:
            named += [getattr(module, name, None) for name in code.co_names]
        waiting += [x for x in named if isinstance(x, FunctionType)]
    return False


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _writes_itself(code: CodeType) -> bool:
    writes = _writing.get(code)
    if writes is None:
        writes = any(
            op.opname in ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR", "STORE_ATTR", "IMPORT_NAME")
            or op.opname.startswith("INPLACE")
            or (op.opname == "BINARY_OP" and op.argrepr.endswith("="))
            for op in dis.get_instructions(code)
        )
        writes = writes or bool(set(code.co_names) & _WRITERS) or "out" in str(code.co_consts)
        writes = writes or any(_writes_itself(inner) for inner in code.co_consts if isinstance(inner, CodeType))
        _writing[code] = writes
    return writes


_WRITERS = {"copyto", "put", "putmask", "place", "put_along_axis", "fill_diagonal", "fill", "sort", "partition"}
_WRITERS |= {"at", "itemset", "resize", "setfield", "setflags", "shuffle", "byteswap", "flat", "real", "imag"}
