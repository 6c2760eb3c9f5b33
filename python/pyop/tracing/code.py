"""Read what the code of a function says, once: names, constants, instructions; those of the functions in it, too.

Who asks: `captured` (what the function may read), `type_checks` and `error_checks` (what no stand-in can answer),
`unused_arguments`.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator
from functools import lru_cache
from itertools import compress
from types import CodeType

__all__ = ["DYNAMIC", "Facts", "Instruction", "codes", "facts", "instructions", "jumps_back", "variables"]

Instruction = dis.Instruction

_NOISE = frozenset(("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "NOP", "RESUME", "COPY_FREE_VARS"))
DYNAMIC = frozenset(("getattr", "hasattr", "vars", "__dict__", "dir", "eval", "exec", "asdict", "astuple", "fields"))
DYNAMIC |= {"__getattribute__", "getmembers", "getattr_static", "__slots__", "deepcopy", "replace", "attrgetter"}
DYNAMIC |= {"methodcaller", "setattr", "__setattr__"}
_LOAD_GLOBAL = opcode.opmap["LOAD_GLOBAL"]
_EXTENDED = opcode.EXTENDED_ARG
_BY_TEXT = frozenset(("import_module", "__import__"))
_IMPORT = opcode.opmap["IMPORT_NAME"]


def _opcodes(*names: str) -> frozenset[int]:
    return frozenset(opcode.opmap[name] for name in names if name in opcode.opmap)


_READS = _opcodes("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_WRITES = _opcodes("STORE_GLOBAL", "DELETE_GLOBAL")
_COUNTS = frozenset(("range", "enumerate", "zip", "int", "round"))
_MATCHES = _opcodes("MATCH_CLASS")
_CATCHES = _opcodes("PUSH_EXC_INFO")
_ASKS_IS = _opcodes("IS_OP")
_BACK = frozenset(op for name, op in opcode.opmap.items() if "JUMP_BACKWARD" in name)
# Newer releases put two variables into one instruction.
_PAIRS = frozenset(op for name, op in opcode.opmap.items() if name.count("_FAST") > 1)
_LOCALS = frozenset(opcode.haslocal) - _PAIRS


def _marks(ops: frozenset[int]) -> bytes:
    """Return the table by which `bytes.translate` makes 1 of these instructions, and 0 of all others."""
    return bytes(op in ops for op in range(256))


_OF_PAIRS, _OF_LOCALS = _marks(_PAIRS), _marks(_LOCALS)
_OF_GLOBALS, _OF_NAMES = _marks(frozenset((_LOAD_GLOBAL,))), _marks(_READS - {_LOAD_GLOBAL})


class Facts:
    """Hold what is known of a code object and of those in it."""

    __slots__ = (
        "asks_is",
        "catches",
        "code",
        "dynamic",
        "globals_read",
        "imports",
        "loops",
        "names",
        "texts",
        "writes_globals",
    )

    def __init__(
        self,
        code: CodeType,
        names: set[str],
        read: set[str],
        writes: bool,
        texts: set[str],
        dynamic: bool,
        catches: bool,
        asks_is: bool,
        loops: bool,
        imports: frozenset[tuple[int, str]],
    ) -> None:
        self.code = code  # alive, so that its id stays its own
        self.names = frozenset(names)  # of globals and attributes
        self.globals_read = frozenset(read)  # an attribute may have the name of a global that the code does not read
        self.writes_globals = writes
        self.texts = frozenset(texts)  # among its constants, keywords of calls included
        self.dynamic = dynamic  # it may read attributes whose names do not stand in it
        self.catches = catches  # exceptions: by `except`, or by a `with` that swallows them
        self.asks_is = asks_is
        self.imports = imports  # levels and names of the modules that it imports; of -1: a text that may be one
        self.loops = loops  # it jumps back (the code itself, not what is in it), or reads what counts


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code, and that of the functions, classes and comprehensions in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes(part)


@lru_cache(maxsize=256)
def instructions(code: CodeType) -> tuple[Instruction, ...]:
    """Return the instructions that do something, of this code alone."""
    return tuple(op for op in dis.get_instructions(code) if op.opname not in _NOISE)


_known: dict[int, Facts] = {}  # by the id of the code: its hash and comparison would go through all that is in it
_MOST_KNOWN = 2048


def facts(code: CodeType) -> Facts:
    """Return what can be said of a code object without running it.

    >>> from pyop.tracing.code import facts
    >>> found = facts((lambda x: [abs(k.real) for k in x.parts("all")]).__code__)
    >>> sorted(found.names), sorted(found.globals_read), found.texts
    (['abs', 'parts', 'real'], ['abs'], frozenset({'all'}))
    """
    known = _known.get(id(code))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(code)] = _read(code)
    return known


def _read(code: CodeType) -> Facts:
    names: set[str] = set()
    read: set[str] = set()
    texts: set[str] = set()
    imports: frozenset[tuple[int, str]] = frozenset()
    writes = matches = catches = asks_is = loops = False
    for part in codes(code):
        names.update(part.co_names)
        raw = part.co_code
        used = set(raw[::2])
        loops = loops or (part is code and not _BACK.isdisjoint(used))
        catches = catches or not _CATCHES.isdisjoint(used)
        asks_is = asks_is or not _ASKS_IS.isdisjoint(used)
        if part.co_names:
            writes = writes or not _WRITES.isdisjoint(used)
            matches = matches or not _MATCHES.isdisjoint(used)
            read.update(_globals_read(part.co_names, raw, _EXTENDED in used))
            if _IMPORT in used:
                imports |= _imports(part)
        for constant in part.co_consts:
            if isinstance(constant, str):
                texts.add(constant)
            elif isinstance(constant, tuple):
                texts.update([x for x in constant if isinstance(x, str)])
    dynamic = matches or "copy" in read or not DYNAMIC.isdisjoint(names)
    if not _BY_TEXT.isdisjoint(names):
        imports |= {(-1, text) for text in texts}
    loops = loops or not _COUNTS.isdisjoint(read)
    return Facts(code, names, read, writes, texts, dynamic, catches, asks_is, loops, imports)


def _globals_read(names: tuple[str, ...], raw: bytes, extended: bool) -> Iterator[str]:
    # Of `dis`, which makes an object of each instruction, a first call would take a good part of its time.
    ops, args = raw[::2], raw[1::2]
    if not extended:  # each means the same wherever it stands
        yield from [names[k >> 1] for k in set(compress(args, ops.translate(_OF_GLOBALS)))]
        yield from [names[k] for k in set(compress(args, ops.translate(_OF_NAMES)))]
        return
    high = 0
    for op, k in zip(ops, args, strict=True):
        if op == _EXTENDED:
            high = (high | k) << 8
            continue
        if op in _READS:
            # The last bit of this one says what else is pushed.
            yield names[(high | k) >> 1 if op == _LOAD_GLOBAL else high | k]
        high = 0


def _imports(code: CodeType) -> frozenset[tuple[int, str]]:
    """Return the levels and names of the imports in this code alone."""
    found, level = set(), 0
    for op in instructions(code):
        if op.opname == "IMPORT_NAME":
            found.add((level, str(op.argval)))
        elif isinstance(op.argval, int) and op.opname.startswith("LOAD"):  # the level, and then the names
            level = op.argval
    return frozenset(found)


def jumps_back(code: CodeType) -> bool:
    """Return whether there is a loop in this code alone."""
    return not _BACK.isdisjoint(code.co_code[::2])


def variables(code: CodeType) -> frozenset[int]:
    """Return the places of the local variables that this code reads or writes."""
    raw = code.co_code
    ops, args = raw[::2], raw[1::2]
    found = frozenset(compress(args, ops.translate(_OF_LOCALS)))
    for k in compress(args, ops.translate(_OF_PAIRS)):
        found |= {k >> 4, k & 15}
    return found
