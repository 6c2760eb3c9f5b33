"""``type(x) is np.ndarray`` in a function that is to be traced.

A Value answers `isinstance` as NumPy's array does, but nothing can answer `type` for it: the check is False, and the
function goes another way than with arrays. So it is looked for in the function's code, and in that of the functions of
its own module that it names; so are ``issubclass(type(x), np.ndarray)``, ``type(x).__name__ == "ndarray"`` and
``isinstance(x, typing.Iterable)``, which looks at the type alone.
"""

from __future__ import annotations

import builtins
import collections.abc
import dis
import os
import typing
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core import Op
from .names import imported

__all__ = ["asks_types_of_numbers", "functions_of", "names_of", "refuse_exact_types"]

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_CLOSURE")
_NOT_SEEN = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "NOP", "RESUME", "COPY_FREE_VARS")
# Between type(x) and the comparison stands no more than np.ndarray, or a tuple of such, and no other comparison.
_NEAR = 24
# isinstance(x, typing.Iterable) asks type(x) alone, and a Protocol of a method without a slot finds it there.
_BY_TYPE: tuple[Any, ...] = (
    *(typing.Iterable, typing.Sized, typing.Container, typing.Collection, typing.Hashable),
    *(typing.SupportsComplex, typing.SupportsRound),
)
_ABSTRACT: tuple[Any, ...] = (
    *(collections.abc.Iterable, collections.abc.Sized, collections.abc.Container, collections.abc.Collection),
    collections.abc.Hashable,
)
_OF_THE_TYPE = ("__name__", "__qualname__", "__module__")
_NAMES = {"numpy", "ndarray", *(t.__name__ for t in np.sctypeDict.values())}

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

_checked: dict[CodeType, str | None] = {}
_passed: weakref.WeakSet[FunctionType] = weakref.WeakSet()


def refuse_exact_types(fn: Callable[..., Any]) -> None:
    """Raise if a function compares the exact type of something with one of NumPy's.

    Parameters
    ----------
    fn : callable

    Raises
    ------
    TypeError
        It says what to write instead.

    Examples
    --------
    >>> import numpy as np
    >>> from pyop.compiling.type_checks import refuse_exact_types
    >>> refuse_exact_types(lambda x: x if isinstance(x, np.ndarray) else x.array)
    >>> refuse_exact_types(lambda x: x if type(x) is np.ndarray else x.array)
    Traceback (most recent call last):
    TypeError: `type(x) is np.ndarray` at <...
    """
    if type(fn) is Op or (type(fn) is FunctionType and fn in _passed):
        return
    for function in functions_of(fn):
        code = function.__code__
        if code not in _checked:
            _checked[code] = next(_found(code, function), None)
        message = _checked[code]
        if message is not None:
            raise TypeError(message)
    if type(fn) is FunctionType:
        _passed.add(fn)


def asks_types_of_numbers(fn: Callable[..., Any]) -> bool:
    """Return whether a function may compare the exact type of something with a type of Python's numbers.

    What stands for a Python number that is not known yet is of another type, so such a function is traced with the
    numbers themselves. Going by names, this says yes too often rather than too seldom.

    Examples
    --------
    >>> from pyop.compiling.type_checks import asks_types_of_numbers
    >>> asks_types_of_numbers(lambda x, t: x * t if type(t) is float else x)
    True
    >>> asks_types_of_numbers(lambda x, t: x * t if isinstance(t, float) else x)
    False
    """
    return any(_may_compare(function) for function in functions_of(fn))


def _may_compare(function: FunctionType) -> bool:
    names = frozenset(names_of(function.__code__))
    if "type" not in names or function.__globals__.get("type", type) is not type:
        return False
    if not names.isdisjoint(_NUMBER_NAMES):
        return True
    named = [imported(function.__globals__.get(name)) for name in names]
    return any(isinstance(x, (dict, tuple, list, set, frozenset)) and any(k in _NUMBERS for k in x) for x in named)


_NUMBERS = (float, int, complex, bool)
_NUMBER_NAMES = frozenset(kind.__name__ for kind in _NUMBERS)


def _exact(line: str) -> str:
    return (
        f"`type(x) is np.ndarray` at {line} (or another comparison of type(x) or its name) is never "
        "true of what stands for an array while a function is traced or differentiated: write "
        "isinstance(x, np.ndarray), or isinstance(x, np.float64), which are"
    )


def _by_type(line: str) -> str:
    return (
        f"isinstance() with a class of typing at {line} asks type(x), which is none of NumPy's while a function is "
        "traced or differentiated: write isinstance(x, collections.abc.Iterable), or another of collections.abc, "
        "numbers or NumPy, which ask what x stands for"
    )


def functions_of(fn: Any) -> Iterator[FunctionType]:
    """The function, and those that it names: in its closure, and in its module."""
    pending: list[Any] = [fn]
    seen: set[FunctionType] = set()
    while pending and len(seen) < 200:
        function = pending.pop()
        while not isinstance(function, (FunctionType, Op)):  # what an op calls is called with arrays
            inner = function.__func__ if type(function) is MethodType else _wrapped(function)
            if inner is None or inner is function:
                break
            function = inner
        if not isinstance(function, FunctionType) or function in seen or _asks_us(function):
            continue
        seen.add(function)
        ours = function.__code__.co_filename.startswith(_PACKAGE)  # what a transformation has made of a function
        if not ours:
            yield function
        for cell in function.__closure__ or ():
            try:
                pending.append(cell.cell_contents)
            except ValueError:
                continue
        if ours:
            continue
        module = function.__module__
        for name in names_of(function.__code__):
            named = function.__globals__.get(name)
            if isinstance(named, FunctionType) and named.__module__ == module:
                pending.append(named)


def _wrapped(x: Any) -> Any:
    try:
        return getattr(x, "__wrapped__", None)
    except Exception:  # of an object that does not like to be looked at
        return None


def _asks_us(function: FunctionType) -> bool:
    """Whether it is a function of NumPy or SciPy, which ask what stands for an array by their protocols."""
    return (function.__module__ or "").partition(".")[0] in ("numpy", "scipy")


def names_of(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that it reads, nested functions included."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names_of(inner)


def _may_ask(code: CodeType, function: FunctionType) -> bool:
    """Whether it is worth the time to read its instructions, going by names; of functions in it, yes."""
    if code.co_freevars or "type" in code.co_names or any(isinstance(part, CodeType) for part in code.co_consts):
        return True
    named = (function.__globals__.get(name, getattr(builtins, name, None)) for name in code.co_names)
    return any(x is isinstance or x is issubclass for x in named)


def _found(code: CodeType, function: FunctionType) -> Iterator[str]:
    """The error of what it compares so."""
    if not _may_ask(code, function):
        return
    ops = [op for op in dis.get_instructions(code) if op.opname not in _NOT_SEEN]
    line = code.co_firstlineno
    start = 0  # of what is compared
    for k, op in enumerate(ops):
        line = _line(op) or line
        if "JUMP" in op.opname:
            start = k + 1
        asked = _value(op, function)
        if asked is isinstance or asked is issubclass:
            given = _arguments(ops[k + 1 : k + 1 + _NEAR], function)
            if asked is isinstance and any(value is t for value in given for t in _BY_TYPE):
                yield _by_type(f"{code.co_filename}:{line}")
            if asked is issubclass and any(value is type for value in given) and any(map(_tells, given)):
                yield _exact(f"{code.co_filename}:{line}")
        if op.opname not in ("IS_OP", "CONTAINS_OP") and not (op.opname == "COMPARE_OP" and "=" in str(op.argval)):
            continue
        near = ops[max(start, k - _NEAR) : k]
        start = k + 1
        if not _calls_type(near, function):
            continue
        if _compares_names(near) or any(_is_type(_loaded(near, i, function)) for i in range(len(near))):
            yield _exact(f"{code.co_filename}:{line}")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _found(inner, function)


def _line(op: Any) -> int | None:
    positions = op.positions
    return None if positions is None else positions.lineno


def _calls_type(ops: list[Any], function: FunctionType) -> bool:
    for k, op in enumerate(ops):
        if op.opname == "LOAD_GLOBAL" and op.argval == "type" and _value(op, function) is type:
            return any(later.opname.startswith("CALL") and later.arg == 1 for later in ops[k:])
    return False


def _compares_names(ops: list[Any]) -> bool:
    """Whether type(x).__name__ is compared with a name that NumPy's types may have."""
    if not any(op.argval == name for op in ops for name in _OF_THE_TYPE):
        return False
    texts = [op.argval for op in ops if op.opname == "LOAD_CONST" and isinstance(op.argval, str | tuple | frozenset)]
    named = [name for text in texts for name in ((text,) if isinstance(text, str) else text)]
    return not named or not _NAMES.isdisjoint(named)


def _arguments(ops: list[Any], function: FunctionType) -> list[Any]:
    """What is named up to the call of two arguments."""
    given: list[Any] = []
    for k, op in enumerate(ops):
        if op.opname.startswith("CALL") and op.arg == 2:
            break
        value = _loaded(ops, k, function)
        given.extend(value if type(value) is tuple else (value,))
    return given


def _tells(x: Any) -> bool:
    """Whether NumPy's arrays or scalars are of this class, and what stands for them may not be."""
    return _is_type(x) or any(x is t for t in (*_BY_TYPE, *_ABSTRACT))


def _is_type(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, (np.ndarray, np.generic))


def _loaded(ops: list[Any], k: int, function: FunctionType) -> Any:
    """What a name, or an attribute of a module, stands for."""
    op = ops[k]
    if op.opname in _LOADS:
        return _value(op, function)
    if op.opname != "LOAD_ATTR" or k == 0:
        return None
    module = _loaded(ops, k - 1, function)
    return getattr(module, op.argval, None) if isinstance(module, ModuleType) else None


def _value(op: Any, function: FunctionType) -> Any:
    """What a name stands for."""
    if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return imported(function.__globals__.get(op.argval, getattr(builtins, str(op.argval), None)))
    if op.opname == "LOAD_DEREF" and op.argval in function.__code__.co_freevars:
        try:
            return (function.__closure__ or ())[function.__code__.co_freevars.index(op.argval)].cell_contents
        except (ValueError, IndexError):
            return None
    return None
