"""Find in the code of a ``for`` loop its body, and the variables that live from iteration to iteration."""

from __future__ import annotations

import copy
import dis
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

__all__ = ["BODY", "Site", "instructions", "is_jump", "live_at", "mapped", "site_of"]

BODY = frozenset(
    word
    for line in (
        "LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONSTANT LOAD_GLOBAL LOAD_DEREF LOAD_ATTR LOAD_METHOD",
        "CALL CALL_KW KW_NAMES CALL_FUNCTION_EX DICT_MERGE CALL_INTRINSIC_1 LIST_EXTEND LIST_TO_TUPLE",
        "BINARY_OP UNARY_NEGATIVE UNARY_POSITIVE UNARY_NOT UNARY_INVERT COMPARE_OP IS_OP CONTAINS_OP TO_BOOL",
        "BINARY_SUBSCR STORE_SUBSCR STORE_ATTR BINARY_SLICE STORE_SLICE BUILD_SLICE BUILD_TUPLE BUILD_LIST BUILD_MAP",
        "BUILD_CONST_KEY_MAP UNPACK_SEQUENCE SWAP COPY POP_TOP GET_ITER FOR_ITER END_FOR POP_ITER",
        "CACHE PRECALL PUSH_NULL EXTENDED_ARG NOP NOT_TAKEN RESUME COPY_FREE_VARS",
        "JUMP_FORWARD JUMP_BACKWARD JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP",
    )
    for word in line.split(" ")
)
_ENDS = ("RETURN_", "RAISE_VARARGS", "RERAISE")
_ALWAYS = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "JUMP"))
_FAST = re.compile(r"(LOAD|STORE|DELETE)_FAST")


class Site:
    """Describe a loop in a code object: `start` is where its body begins, `end` where it goes on behind."""

    __slots__ = (
        *("behind", "carried", "code", "end", "expected", "fresh", "header", "inner", "read", "start", "stored"),
        "targets",
    )

    def __init__(self, code: CodeType, header: int, start: int, end: int) -> None:
        self.code = code
        self.header = header  # the offset of FOR_ITER
        self.start = start
        self.end = end
        ops = [op for op in instructions(code) if start <= op.offset < end]
        uses = [use for op in ops for use in _uses(op)]
        self.read = frozenset(name for kind, name in uses if kind == "LOAD")
        self.read |= {op.argval for op in ops if op.opname == "LOAD_DEREF"}
        self.stored = frozenset(name for kind, name in uses if kind == "STORE")
        self.targets = _targets(ops) or frozenset()
        self.carried = self.stored & live_at(code, header)
        self.behind = self.carried & live_at(code, end)
        self.inner = self.carried & live_at(code, start, header, end)
        self.fresh = self.behind - self.inner  # which each iteration binds before it reads them
        self.expected: Any = None  # what the loop carried last time (`expected`)

    def globals_read(self) -> set[str]:
        """Return the names of globals that the body reads."""
        return {
            op.argval
            for op in instructions(self.code)
            if self.start <= op.offset < self.end and op.opname == "LOAD_GLOBAL"
        }

    def among(self, places: Iterable[str], *names: Callable[[frozenset[str]], frozenset[str]]) -> Site:
        """Return the same loop with further variables, `places`, which are read before and after each iteration.

        `names` are called one after the other, and return what stands for variables.
        """
        made = copy.copy(self)
        made.carried, made.behind, made.inner = (x | {*places} for x in (self.carried, self.behind, self.inner))
        for of in names:
            made.carried, made.behind, made.inner = map(of, (made.carried, made.behind, made.inner))
        made.fresh = made.behind - made.inner
        return made


@lru_cache(maxsize=1024)
def instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    """Return the instructions of a code object, as `dis` finds them."""
    return tuple(dis.get_instructions(code))


def _uses(op: dis.Instruction) -> list[tuple[str, str]]:
    """Return what an instruction does with local variables, with the name of each."""
    if "_FAST" not in op.opname or op.opname.startswith("MAKE"):
        return []
    kinds = _FAST.findall(op.opname)
    names = op.argval if isinstance(op.argval, tuple) else (op.argval,)
    return list(zip(kinds * (len(names) // len(kinds) or 1), names, strict=False))


@lru_cache(maxsize=1024)
def site_of(code: CodeType, offset: int) -> Site | None:
    """Return the loop over what the GET_ITER at `offset` makes; None if it does more than compute and count."""
    ops = instructions(code)
    at = next((k for k, op in enumerate(ops) if op.offset == offset), None)
    if at is None or ops[at].opname != "GET_ITER":
        return None
    at += 1
    while ops[at].opname in ("CACHE", "NOP", "EXTENDED_ARG"):
        at += 1
    if ops[at].opname != "FOR_ITER":
        return None
    header, end = ops[at].offset, ops[at].argval
    inside = [op for op in ops[at + 1 :] if op.offset < end and op.opname not in ("CACHE", "NOP", "EXTENDED_ARG")]
    if _targets(inside) is None:
        return None  # one that is no local variable
    for op in inside:
        if is_jump(op):
            if not header <= _target(op) < end and not _goes_on(ops, op, header):
                return None
        elif op.opname not in BODY and not _is_variable(op):
            return None
    return None if _is_caught(code, header, end) else Site(code, header, inside[0].offset, end)


def _is_caught(code: CodeType, start: int, end: int) -> bool:
    """Return whether the function handles what is raised between two instructions, but for a ``with`` around them."""
    if not getattr(code, "co_exceptiontable", b""):
        return False
    ops = instructions(code)
    entries: Any = dis.Bytecode(code)
    for entry in entries.exception_entries:
        if entry.end <= start or end <= entry.start:
            continue
        handler = [op.opname for op in ops if entry.target <= op.offset][:2]
        if start < entry.start or entry.end < end or handler != ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
            return True
    return False


def _targets(ops: Sequence[dis.Instruction]) -> frozenset[str] | None:
    """Return the variables that a loop binds to its items, by the instructions that its body begins with."""
    found: set[str] = set()
    wanted = 1
    for op in ops:
        if op.opname == "UNPACK_SEQUENCE":
            wanted += op.arg - 1 if op.arg is not None else 0
        elif op.opname.startswith("STORE_FAST"):
            names = [name for kind, name in _uses(op) if kind == "STORE"]
            found.update(names)
            wanted -= len(names)
        elif op.opname not in ("CACHE", "NOP", "EXTENDED_ARG"):
            return None
        if wanted <= 0:
            return frozenset(found)
    return None


def _is_variable(op: dis.Instruction) -> bool:
    return op.opname.startswith(("LOAD_FAST", "STORE_FAST")) and "CLEAR" not in op.opname


def _goes_on(ops: tuple[dis.Instruction, ...], op: dis.Instruction, header: int) -> bool:
    # An extended FOR_ITER is jumped to at the instruction before it.
    before = next((x for x in ops if x.offset == _target(op)), None)
    return before is not None and before.opname in ("EXTENDED_ARG", "CACHE") and 0 < header - before.offset <= 6


def is_jump(op: dis.Instruction) -> bool:
    """Return whether an instruction may go on elsewhere than at the next one."""
    return "JUMP" in op.opname or op.opname == "FOR_ITER"


def _target(op: dis.Instruction) -> int:
    target: int = op.argval
    return target


def live_at(code: CodeType, offset: int, start: int = 0, end: int = -1) -> frozenset[str]:
    """Return the variables that are live at an instruction.

    They hold what may be read later, by the instructions from `start` to `end`.
    """
    first, names, masks = _live(code, start, end)
    mask = masks[mapped(code)[1][offset] - first]
    return frozenset(name for k, name in enumerate(names) if mask >> k & 1)


@lru_cache(maxsize=1024)
def _live(code: CodeType, start: int, end: int) -> tuple[int, list[str], list[int]]:
    """Return the number of the first of these instructions, the variables of the code, and which are live where.

    For each instruction that is a bit for each variable that is live there. It is found from the end to the beginning,
    until nothing changes.
    """
    ops, place, arms = mapped(code)
    first, last = place[start], len(ops) if end < 0 else place[end]
    names: dict[str, int] = {}
    rows = []
    for k in range(first, last):
        op = ops[k]
        uses: dict[str, str] = {}
        for kind, name in _uses(op):
            uses.setdefault(name, kind)
        read = sum(1 << names.setdefault(name, len(names)) for name, kind in uses.items() if kind == "LOAD")
        bound = sum(1 << names.setdefault(name, len(names)) for name, kind in uses.items() if kind != "LOAD")
        goes = [] if op.opname.startswith(_ENDS) else [k + 1]
        if goes and is_jump(op) and k not in arms:
            target = place[_target(op)]
            if op.opname in _ALWAYS:
                goes = []
            goes.append(arms.get(target, target) if target <= k else target)
        rows.append((k - first, read, ~bound, [to - first for to in goes if first <= to < last]))
    rows.reverse()
    live = [0] * (last - first)
    changed = True
    while changed:
        changed = False
        for k, read, kept, goes in rows:
            behind = 0
            for to in goes:
                behind |= live[to]
            now = read | behind & kept
            if now != live[k]:
                live[k] = now
                changed = True
    return first, [*names], live


@lru_cache(maxsize=1024)
def mapped(code: CodeType) -> tuple[tuple[dis.Instruction, ...], dict[int, int], dict[int, int]]:
    """Return instructions, their numbers by offset, and where the loops over the arms of a condition go on.

    Each arm goes there, and nothing comes there without an arm.
    """
    ops = instructions(code)
    place = {op.offset: k for k, op in enumerate(ops)}
    arms: dict[int, int] = {}
    for k, op in enumerate(ops):
        if op.opname == "FOR_ITER":
            body = k + 1
            while ops[body].opname in ("CACHE", "NOP", "EXTENDED_ARG", "NOT_TAKEN"):
                body += 1
            if any(kind == "STORE" and name.startswith("__pyop_a") for kind, name in _uses(ops[body])):
                arms[k] = place[_target(op)]
                while (
                    k
                    and ops[k - 1].opname in ("EXTENDED_ARG", "CACHE")
                    and ops[k].opname in ("FOR_ITER", "EXTENDED_ARG")
                ):
                    k -= 1
                    arms.setdefault(k, place[_target(op)])
    return ops, place, arms
