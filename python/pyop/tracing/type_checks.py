"""Find ``type(x) is np.ndarray`` in a function that is to be traced.

A Value answers `isinstance` as NumPy's array does, but nothing can answer `type` for it: the check is False, and the
function goes another way than with arrays. So it is looked for in the function's code, and in that of the functions of
its own module that it names; so are ``issubclass(type(x), np.ndarray)``, ``type(x).__name__ == "ndarray"`` and
``isinstance(x, typing.Iterable)``, which looks at the type alone.
"""

from __future__ import annotations

import builtins
import collections.abc
import contextlib
import sys
import typing
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .._core import Op, Value
from ..graph.counter import Counter
from ..graph.symbolic_number import Number
from ..refusals import refusal
from .code import Instruction, codes, facts, instructions
from .functions import functions_of
from .identity import compares_objects
from .names import imported, value_of

__all__ = ["asks_kind", "asks_types_of_numbers", "own_names", "refuse_exact_types"]

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_CLOSURE")
# Between type(x) and the comparison stands no more than np.ndarray, or a tuple of such, and no other comparison.
_NEAR = 24
# isinstance(x, typing.Iterable) asks type(x) alone, and a Protocol of a method without a slot finds it there.
_BY_TYPE: tuple[Any, ...] = (
    *(typing.Iterable, typing.Sized, typing.Container, typing.Collection, typing.Hashable),
    *(typing.SupportsComplex, typing.SupportsRound),
)
_BY_TYPE_NAMES = frozenset(
    ("Iterable", "Sized", "Container", "Collection", "Hashable", "SupportsComplex", "SupportsRound")
)
_TABLES = (tuple, list, set, frozenset, dict)
_ABSTRACT: tuple[Any, ...] = (
    *(collections.abc.Iterable, collections.abc.Sized, collections.abc.Container, collections.abc.Collection),
    collections.abc.Hashable,
)
_OF_THE_TYPE = ("__name__", "__qualname__", "__module__")
_NAMES = {"numpy", "ndarray", *(t.__name__ for t in np.sctypeDict.values())}

_passed: weakref.WeakSet[FunctionType] = weakref.WeakSet()


def refuse_exact_types(
    fn: Callable[..., Any], functions: list[FunctionType] | None = None, by_twins: bool = True
) -> bool:
    """Raise if a function compares the exact type of something with one of NumPy's.

    Return whether one of `functions` compares objects (`compares_objects`); they are the function itself and all that
    it may call, if somebody has looked. Unless it is traced `by_twins`, which answer ``type(x)`` and
    ``hasattr(x, "name")`` as NumPy does, refuse a function that asks these, too.

    >>> import numpy as np
    >>> from pyop.tracing.type_checks import refuse_exact_types
    >>> refuse_exact_types(lambda x: x if isinstance(x, np.ndarray) else x.array)
    False
    >>> refuse_exact_types(lambda x: x if type(x) is np.ndarray else x.array)
    Traceback (most recent call last):
    TypeError: `type(x) is np.ndarray` at <...
    """
    if type(fn) is Op or (functions is None and type(fn) is FunctionType and fn in _passed):
        return False
    asked = functions is None  # as the transformations do at each call
    functions = list(functions_of(fn)) if functions is None else functions
    for function in functions:
        if _may_ask(function.__code__, function):
            for message in _found(function.__code__, function):
                raise TypeError(message)
    if any(map(_asks_kinds, functions)):
        for function in functions:
            if _names_by_type(function):
                raise TypeError(_by_type(_place(function.__code__)))
    if not by_twins:
        for function in functions:
            if _reflects(function):
                raise refusal(_reflected(_place(function.__code__)))
    compared = compares_objects(functions)
    if asked and type(fn) is FunctionType:
        _passed.add(fn)
    return compared


def _asks_kinds(function: FunctionType) -> bool:
    return not facts(function.__code__).globals_read.isdisjoint(("isinstance", "issubclass"))


def _names_by_type(function: FunctionType) -> bool:
    """Return whether a function names a class that asks type(x) alone, or has it in a table."""
    found = facts(function.__code__)
    named = [imported(function.__globals__.get(name)) for name in found.globals_read]
    if any(x is typing for x in named) and not found.names.isdisjoint(_BY_TYPE_NAMES):
        return True
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # empty
            named.append(cell.cell_contents)
    named.extend((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
    return any(_is_by_type(x) or (type(x) in _TABLES and any(map(_is_by_type, x))) for x in named)


def _is_by_type(x: Any) -> bool:
    if any(x is kind for kind in _BY_TYPE):
        return True
    # The Protocols of CPython 3.12 look for methods in the class, where what stands for a scalar has those of arrays.
    is_protocol = isinstance(x, type) and sys.version_info >= (3, 12) and getattr(x, "_is_runtime_protocol", False)
    return is_protocol and x.__module__ not in ("typing", "collections.abc")


def asks_types_of_numbers(functions: Iterable[FunctionType]) -> bool:
    """Return whether one of some functions may tell Python's numbers by their exact type, or by ``x is True``.

    What stands for a Python number that is not known yet is of another type, so such a function is traced with the
    numbers themselves. Going by names, this says yes too often rather than too seldom.

    >>> from pyop.tracing.type_checks import asks_types_of_numbers
    >>> asks_types_of_numbers([lambda x, t: x * t if type(t) is float else x])
    True
    >>> asks_types_of_numbers([lambda x, t: x * t if isinstance(t, float) else x])
    False
    """
    return any(map(_may_compare, functions))


_ASKS_KIND = frozenset(("isinstance", "type", "hasattr", "getattr", "callable"))
_OF_SCALARS = frozenset(dir(np.float64)) - frozenset(dir(float))


def asks_kind(code: CodeType, names: Iterable[str]) -> bool:
    """Return whether code may tell NumPy's scalars from Python's numbers.

    It reads an attribute of one of these variables that NumPy's scalars have and Python's numbers have not, or asks for
    the type of a variable that it binds.

    >>> from pyop.tracing.type_checks import asks_kind
    >>> code = compile("def f(x):\\n s = x[0]\\n return s.dtype", "", "exec").co_consts[0]
    >>> asks_kind(code, ["s"]), asks_kind(code, ["x"])
    (True, False)
    """
    ops, wanted = instructions(code), {*names}
    bound = {name for op in ops if op.opname.startswith("STORE_FAST") for name in _variables(op)}
    for k, op in enumerate(ops[:-1]):
        if (
            op.opname == "LOAD_GLOBAL"
            and op.argval in _ASKS_KIND
            and any(not bound.isdisjoint(_variables(near)) for near in ops[k + 1 : k + 3])
        ):
            return True
        if op.opname.startswith("LOAD_FAST") and not wanted.isdisjoint(_variables(op)[-1:]):
            then = ops[k + 1]
            if then.opname in ("LOAD_ATTR", "LOAD_METHOD") and then.argval in _OF_SCALARS:
                return True
    return False


def _variables(op: Instruction) -> tuple[str, ...]:
    """Return the variables of an instruction that reads or binds some."""
    if "_FAST" not in op.opname:
        return ()
    return op.argval if isinstance(op.argval, tuple) else (op.argval,)


def _may_compare(function: FunctionType) -> bool:
    names = facts(function.__code__).names
    if _compares_truths(function):
        return True
    if "type" not in names or function.__globals__.get("type", type) is not type:
        return False
    if not names.isdisjoint(_NUMBER_NAMES):
        return True
    named = [imported(function.__globals__.get(name)) for name in names]
    return any(isinstance(x, (dict, tuple, list, set, frozenset)) and any(k in _NUMBERS for k in x) for x in named)


def _compares_truths(function: FunctionType) -> bool:
    """Return whether a function asks if something is Python's True or False, as ``t > 1`` of Python numbers is."""
    if not facts(function.__code__).asks_is:
        return False
    ops = [instructions(code) for code in codes(function.__code__)]
    return any(
        op.opname == "IS_OP" and any(type(part.argval) is bool for part in known[max(k - 2, 0) : k])
        for known in ops
        for k, op in enumerate(known)
    )


_NUMBERS = (float, int, complex, bool)
_NUMBER_NAMES = frozenset(kind.__name__ for kind in _NUMBERS)


def _reflects(function: FunctionType) -> bool:
    """Return whether a function asks for a type, or by name for an attribute that a Value has and an array has not."""
    found = facts(function.__code__)
    asked = {x for name in found.globals_read if (x := _builtin(function, name)) in (type, hasattr, getattr)}
    return type in asked or (bool(asked) and not own_names().isdisjoint(found.texts))


def _builtin(function: FunctionType, name: str) -> Any:
    return getattr(builtins, name, None) if name not in function.__globals__ else None


@lru_cache(maxsize=1)
def own_names() -> frozenset[str]:
    """Return the names of attributes of what stands for arrays and numbers, which these do not all have.

    >>> from pyop.tracing.type_checks import own_names
    >>> "spec" in own_names(), "shape" in own_names()
    (True, False)
    """
    of_arrays = set(dir(Value)).difference(dir(np.ndarray), dir(np.float64))
    of_numbers = set(dir(Number)).difference(dir(complex)) | set(dir(Counter)).difference(dir(int))
    return frozenset(of_arrays | of_numbers)


def _reflected(line: str) -> str:
    return (
        f"type(x), or hasattr(x, name) or getattr(x, name) with a name that arrays do not have, at {line} would ask "
        "what stands for an array: write isinstance(x, np.ndarray)"
    )


def _exact(line: str) -> str:
    return (
        f"`type(x) is np.ndarray` at {line} (or another comparison of type(x) or its name) is never "
        "true of what stands for an array while a function is traced or differentiated: write "
        "isinstance(x, np.ndarray), or isinstance(x, np.float64), which are"
    )


def _by_type(line: str) -> str:
    return (
        f"isinstance() with a class of typing (or a Protocol) at {line} asks type(x), which is none of NumPy's while "
        "a function is traced or differentiated: write isinstance(x, collections.abc.Iterable), or another of "
        "collections.abc, numbers or NumPy, which ask what x stands for"
    )


def _may_ask(code: CodeType, function: FunctionType) -> bool:
    """Return whether the instructions of code are worth reading, going by names; with functions in it, yes."""
    if code.co_freevars or "type" in code.co_names or CodeType in map(type, code.co_consts):
        return True
    if not code.co_names:
        return False
    named = (function.__globals__.get(name, getattr(builtins, name, None)) for name in code.co_names)
    return any(x is isinstance or x is issubclass for x in named)


def _found(code: CodeType, function: FunctionType) -> Iterator[str]:
    """Yield the errors of what code compares so."""
    ops = instructions(code)
    line = code.co_firstlineno
    start = 0  # of what is compared
    for k, op in enumerate(ops):
        line = _line(op) or line
        if "JUMP" in op.opname:
            start = k + 1
        asked = value_of(op, function)
        if asked is isinstance or asked is issubclass:
            given = _arguments(ops[k + 1 : k + 1 + _NEAR], function)
            if asked is issubclass and any(value is type for value in given) and any(map(_tells, given)):
                yield _exact(_place(code, line))
        if op.opname not in ("IS_OP", "CONTAINS_OP") and not (op.opname == "COMPARE_OP" and "=" in str(op.argval)):
            continue
        near = ops[max(start, k - _NEAR) : k]
        start = k + 1
        if not _calls_type(near, function):
            continue
        if _compares_names(near) or any(_is_type(_loaded(near, i, function)) for i in range(len(near))):
            yield _exact(_place(code, line))
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and _may_ask(inner, function):
            yield from _found(inner, function)


def _place(code: CodeType, line: int | None = None) -> str:
    from ..graph.cells import place_in  # for errors only: `import pyop` need not load it

    return place_in(code, line)


def _line(op: Any) -> int | None:
    positions = op.positions
    return None if positions is None else positions.lineno


def _calls_type(ops: Sequence[Any], function: FunctionType) -> bool:
    for k, op in enumerate(ops):
        if op.opname == "LOAD_GLOBAL" and op.argval == "type" and value_of(op, function) is type:
            return any(later.opname.startswith("CALL") and later.arg == 1 for later in ops[k:])
    return False


def _compares_names(ops: Sequence[Any]) -> bool:
    """Return whether type(x).__name__ is compared with a name that NumPy's types may have."""
    if not any(op.argval == name for op in ops for name in _OF_THE_TYPE):
        return False
    texts = [op.argval for op in ops if op.opname == "LOAD_CONST" and isinstance(op.argval, str | tuple | frozenset)]
    named = [name for text in texts for name in ((text,) if isinstance(text, str) else text)]
    return not named or not _NAMES.isdisjoint(named)


def _arguments(ops: Sequence[Any], function: FunctionType) -> list[Any]:
    """Return what is named up to the call of two arguments."""
    given: list[Any] = []
    for k, op in enumerate(ops):
        if op.opname.startswith("CALL") and op.arg == 2:
            break
        value = _loaded(ops, k, function)
        given.extend(value if type(value) is tuple else (value,))
    return given


def _tells(x: Any) -> bool:
    """Return whether NumPy's arrays or scalars are of this class, and what stands for them may not be."""
    return _is_type(x) or any(x is t for t in (*_BY_TYPE, *_ABSTRACT))


def _is_type(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, (np.ndarray, np.generic))


def _loaded(ops: Sequence[Any], k: int, function: FunctionType) -> Any:
    """Return what a name, or an attribute of a module, stands for."""
    op = ops[k]
    if op.opname in _LOADS:
        return value_of(op, function)
    if op.opname != "LOAD_ATTR" or k == 0:
        return None
    module = _loaded(ops, k - 1, function)
    return getattr(module, op.argval, None) if isinstance(module, ModuleType) else None
