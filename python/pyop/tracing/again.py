"""Call a function on Tensors, on examples of a batch or on Values of a graph made by hand, if need be as its twin.

Such a function runs as it is. Where it is refused what it does, to have NumPy make an array of a list of Tensors, it
runs again as its twin (`pyop.tracing.twins`), whose stand-ins make such arrays. What it had changed before is put back,
so that all is as if it ran once; where that cannot be done the refusal stands. What has needed its twin once runs as
that from the start.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from .._core import Tensor, Value, graph_being_built
from ..declare.rebuild import walk
from ..graph.graph import twinned
from ..refusals import was_refused
from .captured import Watch
from .code import codes
from .functions import functions_of
from .libraries import is_library
from .twins import Twins

__all__ = ["called"]

_known: dict[int, tuple[CodeType, bool]] = {}  # by the id of the code: whether the twin runs
_MOST_KNOWN = 1024
_LISTS = frozenset(opcode.opmap[name] for name in ("BUILD_LIST", "BUILD_TUPLE", "LIST_APPEND"))
_NAMES = frozenset(("append", "list", "tuple"))


def called(run: Callable[[Any], Any], f: Any, given: tuple[Any, ...]) -> Any:
    """Return ``run(f)``, which calls `f` with what is `given`; or the same of its twin.

    >>> import numpy as np, pyop
    >>> from pyop.tracing.again import called
    >>> def mean(x):
    ...     return np.mean([x[0], x[1]])
    >>> mean.__module__ = "mine"
    >>> called(lambda f: pyop.grad(f)(np.array([1.0, 3.0])), mean, ())
    array([0.5, 0.5])
    """
    graph = graph_being_built()
    if graph is not None and (getattr(graph, "_deciding", None) or getattr(graph, "_twins", None)):
        return run(twinned(f))  # who compiles the function sees to it
    code = f.__code__ if type(f) is FunctionType and not f.__dict__ else _code_of(f)
    if code is None:
        return run(f)
    known = _known.get(id(code))
    if known is None and (code := _code_of(f)) is None:  # of a library
        return run(f)
    if known is not None and known[1]:
        return _by_twin(run, f)
    if known is None and not any(_builds_lists(part) for fn in functions_of(f) for part in codes(fn.__code__)):
        known = _note(code, False)
    if known is not None:
        try:
            return run(f)
        except Exception as error:
            if was_refused(error):
                _known.pop(id(code), None)  # the next call is ready for it
            raise
    watch = Watch(f, [given])
    before = _memory(given)
    nodes = 0 if graph is None else len(graph)
    try:
        result = run(f)
    except Exception as error:
        if not was_refused(error) or watch.unseen or _memory(given) != before or _acts(graph, nodes):
            raise
        refused = error
    else:
        _note(code, False)
        return result
    watch.restore()
    try:
        result = _by_twin(run, f)
    except Exception as error:
        if was_refused(error):
            raise refused from None
        _note(code, True)  # what the function raises itself
        raise
    finally:
        del refused  # whose frames hold what is differentiated
    _note(code, True)
    return result


def _code_of(f: Any) -> CodeType | None:
    """Return the code of a function of the user's, whatever pyop has wrapped around it."""
    for _ in range(20):
        if type(f) is MethodType:
            f = f.__func__
        elif type(f) is FunctionType and not hasattr(f, "__wrapped__"):
            return None if is_library(f) else f.__code__
        elif isinstance(f, partial):
            f = f.func
        else:
            f = getattr(f, "__wrapped__", None) or getattr(type(f), "__call__", None)  # noqa: B004  # its function
    return None


def _builds_lists(code: CodeType) -> bool:
    return not (_LISTS.isdisjoint(code.co_code[::2]) and _NAMES.isdisjoint(code.co_names))


def _note(code: CodeType, twin: bool) -> tuple[CodeType, bool]:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(code)] = code, twin  # alive, so that the id stays its own
    return code, twin


def _memory(given: tuple[Any, ...]) -> list[Any]:
    """Return which arrays the Tensors and Values among the arguments are handles of."""
    leaves = [*walk(given)]
    tensors = [id(x._numbers) for x in leaves if type(x) is Tensor]
    return tensors + [(x._key, x._root()._key) for x in leaves if type(x) is Value]


def _acts(graph: Any, nodes: int) -> bool:
    """Return whether a graph has got nodes that do something whenever it runs, after so many others."""
    return graph is not None and any(graph[k].stateful for k in range(nodes, len(graph)))


def _by_twin(run: Callable[[Any], Any], f: Any) -> Any:
    from . import casts, joined, literals, math_functions  # noqa: F401  # the stand-ins: on first use

    twins = Twins(rewrites=False)
    result = run(twins.of_callable(f))
    twins.check()
    return result
