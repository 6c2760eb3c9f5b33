"""Ask of each call whether two arguments are one array, if the function may ask it: ``a is b``.

An argument given twice is one symbolic array, and such a call has a plan of its own. Most functions never ask, and one
plan does for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..refusals import of_state
from .code import Instruction, codes, facts, instructions
from .names import value_of

__all__ = ["compares_objects", "refuse_held"]

_OPERATORS = frozenset(("is_", "is_not"))  # of the module operator
# They give the array itself where they have nothing to do, and else a view or a new array.
_ITSELF = frozenset(("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "nan_to_num", "real"))
_ITSELF |= {"real_if_close", "squeeze", "view"}
_TRUTHS = frozenset(("True_", "False_"))  # of NumPy
_ENDS = ("STORE_", "POP_TOP", "RETURN_", "IS_OP")  # of what an operand is computed by
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT")


def compares_objects(functions: Iterable[FunctionType]) -> bool:
    """Return whether one of the functions may ask if two arrays are the same object.

    Refuse one that compares with an array that it holds: nothing that stands for an argument ever is that array.

    >>> from pyop.tracing.identity import compares_objects
    >>> compares_objects([lambda a, b: a if a is b else b]), compares_objects([lambda a: a is None])
    (True, False)
    """
    asked = [_asks(function) for function in functions]  # all of them, as one may be refused
    return any(asked)


def _asks(function: FunctionType) -> bool:
    names = facts(function.__code__)
    found = "id" in names.globals_read or not _OPERATORS.isdisjoint(names.names)
    for code in codes(function.__code__) if names.asks_is else ():
        ops = instructions(code)
        for k, op in enumerate(ops):
            if op.opname == "IS_OP" and k > 0:
                found = _of_arrays(ops[:k], function) or found
    if names.asks_is or found:
        _refuse_truths(function, names.names)
    if found and (given := sorted(_ITSELF & names.names)):
        from ..graph.cells import place_in

        raise TypeError(
            f"{function.__name__} ({place_in(function.__code__)}) compares arrays "
            f"by `is` and calls {given[0]}, which gives the array itself or a new one, as NumPy sees fit, and here "
            "always a new one: compare shapes instead, or pass what is to be decided as a static argument"
        )
    return found


def _refuse_truths(function: FunctionType, names: frozenset[str]) -> None:
    """Refuse ``x.any() is np.True_``: NumPy has two objects for all its truths, and a Value is neither."""
    held = {cell for cell in names if type(function.__globals__.get(cell)) is np.bool_}
    if not (held or not _TRUTHS.isdisjoint(names) or function.__code__.co_freevars):
        return
    found = not _OPERATORS.isdisjoint(names) or "id" in names
    for code in codes(function.__code__):
        start = 0
        ops = instructions(code)
        for k, op in enumerate(ops):
            if op.opname == "IS_OP":
                found = found or any(_is_truth(part, function) for part in ops[start:k])
            if op.opname.startswith(_ENDS) or "JUMP" in op.opname:
                start = k + 1
    if found:
        from ..graph.cells import place_in

        raise TypeError(
            f"{function.__name__} ({place_in(function.__code__)}) compares with np.True_ or np.False_ by `is`, which "
            "nothing that stands for a truth is while a function is traced or differentiated: write `if x.any():`"
        )


def _is_truth(op: Instruction, function: FunctionType) -> bool:
    return op.argval in _TRUTHS or type(value_of(op, function)) is np.bool_


def _of_arrays(before: tuple[Instruction, ...], function: FunctionType) -> bool:
    """Return whether both of the operands that these instructions have put there may be arrays."""
    right = before[-1]
    if right.opname.count("_FAST") > 1:  # two variables at once, in newer releases
        return True
    if _is_plain(before[:-1], right, function):
        return False
    alone = right.opname.startswith("LOAD_") and right.opname != "LOAD_ATTR"
    return not (alone and len(before) > 1 and _is_plain(before[:-2], before[-2], function))


def _is_plain(before: tuple[Instruction, ...], op: Instruction, function: FunctionType) -> bool:
    """Return whether an operand is known, and no array; refuse an array that the function holds."""
    if op.opname in _CONSTANTS:
        return True
    value = value_of(op, function)
    if op.opname == "LOAD_ATTR" and before:
        owner = value_of(before[-1], function)
        value = getattr(owner, str(op.argval), None) if isinstance(owner, (ModuleType, type)) else None
    if isinstance(value, np.ndarray):
        from ..graph.cells import place_in

        raise of_state(
            f"{function.__name__} ({place_in(function.__code__)}) compares "
            f"{op.argval!r}, an array that it holds, by `is`, and no argument is that array while the function is "
            "traced: pass what is to be decided as a static argument, or compare before the call"
        )
    return value is not None


def refuse_held(function: str, held: list[Any], arguments: list[tuple[str, Any]]) -> None:
    """Refuse a call of a function that asks for identity with an array that it holds; `arguments` are by paths."""
    ids = {*map(id, held)}
    for path, x in arguments:
        if type(x) is np.ndarray and id(x) in ids:
            raise of_state(
                f"{function} compares arrays by `is`, and argument {path!r} is an array that it holds, which no "
                "symbolic argument is: pass a copy, or a static argument to be decided by"
            )
