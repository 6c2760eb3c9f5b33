"""Give the text of what stands for an array, in a trace, a derivative or a map: to be shown, and no more.

``print(f"x = {x}")`` shows a Value as one would want it, and so does the message of an error. A function that goes by
the text of an array (``"nan" in str(x)``, ``float(f"{x[0]}")``, a key of a dict) would go by another than NumPy's, or
take numbers out of the record. A text does not know what becomes of it; the code that asks for it does.
"""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FrameType

from ..graph.cells import place_in
from ..refusals import refusal
from .code import facts
from .libraries import is_installed

__all__ = ["shown_text"]

Ops = tuple[dis.Instruction, ...]

# Who makes a text for who asked it.
_PASSING_ON = frozenset(("__repr__", "__str__", "__format__"))
_TEXT_MODULES = frozenset(
    ("collections", "dataclasses", "enum", "functools", "json", "pprint", "reprlib", "string", "textwrap", "types")
)
_SHOWING = frozenset(("print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log"))
_SHOWING |= {"pprint", "pp"}
_KEEPING = frozenset(("StringIO", "getvalue", "redirect_stdout"))
_NOISE = frozenset(("CACHE", "EXTENDED_ARG", "KW_NAMES", "NOP", "RESUME"))
# What makes of a text, or of several, a text or a container of texts.
_TEXTS = frozenset(("BINARY_OP", "BUILD_STRING", "BUILD_TUPLE", "BUILD_LIST", "CONVERT_VALUE"))
_CALLS = frozenset(("CALL", "CALL_KW", "PRECALL"))


def shown_text(text: str, what: str = "") -> str:
    """Return the text of something (`what`), for the function that asks.

    Refuse if its code does more than show it: looks into the text, or keeps it.
    """
    frame = _asking()
    if frame is None or _is_shown(frame.f_code, frame.f_lasti):
        return text
    raise refusal(
        f"the text of {what or text} is looked into, or kept, at {place_in(frame.f_code, frame.f_lineno)}, while "
        "NumPy's text is of the numbers, which it does not have here, or may not give away: decide by values "
        "(np.where, np.isnan(x).any()), make texts of what the function returns, or use a pyop.op, called with arrays; "
        "print(x), a log and the message of an error may show it"
    )


def _asking() -> FrameType | None:
    """Return the frame of the user's that asks for the text; None if it is shown by a library."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if frame.f_code.co_name not in _PASSING_ON:
            if not is_installed(root):
                return frame
            if root not in _TEXT_MODULES:
                return None
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=1024)
def _is_shown(code: CodeType, offset: int) -> bool:
    """Return whether a text that is made by the instruction there goes nowhere but to a reader."""
    if not _KEEPING.isdisjoint(facts(code).names):
        return False
    ops = tuple(op for op in dis.get_instructions(code) if op.opname not in _NOISE)
    # Of a call of Python code the offset is behind it, in its cache.
    at = max(k for k, op in enumerate(ops) if op.offset <= offset)
    return (ops[at].opname.startswith("CALL") and _called(ops, at) in _SHOWING) or _goes_to_readers(ops, at, set())


def _goes_to_readers(ops: Ops, at: int, seen: set[int], raised: bool = False) -> bool:
    """Return whether what the instruction leaves on the stack is taken by those that show it, or by nobody.

    `raised`: it is what a function made of the text, and has to be raised.
    """
    if at in seen:
        return True
    seen.add(at)
    k = _taken(ops, at)
    if k is None:
        return False
    name = ops[k].opname
    if name == "POP_TOP":
        return not raised
    if name in _TEXTS or name.startswith("FORMAT_"):
        return _goes_to_readers(ops, k, seen, raised)
    if name in _CALLS:
        k += name == "PRECALL"
        return _called(ops, k) in _SHOWING or _goes_to_readers(ops, k, seen, raised=True)
    if name == "STORE_FAST":
        return all(_is_harmless(ops, j, ops[k].argval, seen, raised) for j in range(len(ops)))
    return name == "RAISE_VARARGS"


def _is_harmless(ops: Ops, j: int, variable: str, seen: set[int], raised: bool) -> bool:
    """Return whether an instruction leaves a variable alone, or takes it to show it."""
    op = ops[j]
    if op.argval == variable and op.opname in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"):
        return _goes_to_readers(ops, j, seen, raised)
    named = op.argval if isinstance(op.argval, tuple) else (op.argval,)
    return "_FAST" not in op.opname or variable not in named or op.opname in ("STORE_FAST", "DELETE_FAST")


def _taken(ops: Ops, at: int) -> int | None:
    """Return which instruction takes from the stack what the one at `at` leaves there; None if one cannot see that."""
    above, k = 0, at + 1
    while k < len(ops):
        op = ops[k]
        if op.opname == "JUMP_FORWARD":
            k = next(j for j, other in enumerate(ops) if other.offset >= op.argval)
            continue
        if op.opname in ("COPY", "SWAP"):
            pops = op.arg or 0
        elif op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            pops = 1
        else:
            pops = _pushes(op) - _effect(op)
        if pops > above:
            return k
        if op.opname.startswith(("JUMP", "RETURN", "YIELD")):
            return None
        above += _effect(op)
        k += 1
    return None


def _effect(op: dis.Instruction) -> int:
    return dis.stack_effect(op.opcode, op.arg, jump=False)


def _pushes(op: dis.Instruction) -> int:
    if op.opname.startswith(("LOAD_", "PUSH_")):
        return max(_effect(op), 0)
    takes_only = ("POP_", "STORE_", "RETURN_", "RAISE_", "DELETE_", "LIST_", "SET_", "MAP_", "DICT_", "PRECALL", "JUMP")
    return 0 if op.opname.startswith(takes_only) else 1


def _called(ops: Ops, at: int) -> str | None:
    """Return the last part of the name of what a call calls."""
    left, j = _effect(ops[at]), at
    while left != 1 and j > 0:
        j -= 1
        left += _effect(ops[j])
    j += ops[j].opname == "PUSH_NULL"
    while ops[j + 1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        j += 1
    return ops[j].argval if isinstance(ops[j].argval, str) else None
