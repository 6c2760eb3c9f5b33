"""Read the text of declarations: one array's spec, and the parts of larger grammars.

    spec  = dtype [ "[" dims "]" ]  |  "[" dims "]"
    dtype = a NumPy name or code | type variable | "_"
    dims  = [ dim { ("," | whitespace) dim } ]
    dim   = "..." | "*" name | "_" | "_!" | name "!" | sum
    sum   = product { ("+" | "-") product }
    product = factor { ("*" | "//") factor }
    factor  = integer | name | "(" sum ")" | "-" factor

Between dims that are separated by whitespace, ``n *batch`` is two dims, and ``n * m`` and ``n*m`` are one.
"""

from __future__ import annotations

import operator
import re
from typing import Final, TypeAlias

from .dim import MAX_SIZE, Dim
from .dtype_text import AnyDType, dtype_named, expected_dtype
from .marks import DimLike, Late, Variadic, is_open

__all__ = ["Cursor", "point_at", "read_dim", "read_dtype", "read_spec"]

RawSpec: TypeAlias = tuple[AnyDType | str | None, tuple[DimLike, ...] | None]

_MAX_TEXT: Final = 20_000
_MAX_DIMS: Final = 64  # NumPy's limit
_MAX_PARENTHESES: Final = 50
_WINDOW: Final = 60

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]+")
_INTEGER: Final = re.compile(r"[0-9]+")
_DTYPE: Final = re.compile(r"[<>=|]?[A-Za-z_][A-Za-z0-9_]*|\?")
_UNIT: Final = re.compile(r"\[[0-9]*(generic|Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
_OPERATIONS: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv}
_DIM: Final = "a size (3, n, n+1), '_', '...', '*name' or 'name!'"


def point_at(text: str, position: int, message: str) -> ValueError:
    """Return a ValueError that shows the text with a caret under one character of it."""
    start = max(0, position - _WINDOW)
    before = "".join(map(_visible, text[start:position]))
    after = "".join(map(_visible, text[position : position + _WINDOW]))
    if start:
        before = "..." + before
    if position + _WINDOW < len(text):
        after += "..."
    return ValueError(f"{message}\n    {before}{after}\n    {' ' * len(before)}^")


def _visible(character: str) -> str:
    return character if " " <= character <= "~" else character.encode("unicode_escape").decode("ascii")


class Cursor:
    """Hold a position in the text of a declaration, with the steps that move it."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a declaration is text, got {type(text).__name__}")
        self.text = text
        self.position = 0
        if len(text) > _MAX_TEXT:
            raise self.error(f"expected a declaration of at most {_MAX_TEXT} characters, got {len(text)}")

    def error(self, message: str, at: int | None = None) -> ValueError:
        """Return a ValueError that points at a position, by default the current one."""
        return point_at(self.text, self.position if at is None else at, message)

    def unexpected(self, expected: str) -> ValueError:
        """Return the error for text other than the grammar expects here."""
        end = self.position >= len(self.text)
        got = "the end" if end else repr(self.text[self.position])
        return self.error(f"expected {expected}, got {got}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Take what matches here, if anything does."""
        matched = pattern.match(self.text, self.position)
        if matched is None:
            return None
        self.position = matched.end()
        return matched.group()

    def take(self, literal: str) -> bool:
        """Take a literal, if it is next."""
        if self.text.startswith(literal, self.position):
            self.position += len(literal)
            return True
        return False

    def at(self, literal: str) -> bool:
        """Return whether a literal is next."""
        return self.text.startswith(literal, self.position)

    def skip(self) -> bool:
        """Skip whitespace; whether there was any."""
        return bool(self.match(_SPACE))

    def at_end(self) -> bool:
        """Return whether only whitespace is left."""
        self.skip()
        return self.position >= len(self.text)


def read_spec(cursor: Cursor) -> tuple[RawSpec, list[int]]:
    """Read one spec; return it with the start of each of its dims."""
    cursor.skip()
    dtype: AnyDType | str | None = None
    if not cursor.at("["):
        dtype = read_dtype(cursor)
    elif cursor.position >= len(cursor.text):
        raise cursor.unexpected("a dtype or '['")
    cursor.skip()
    if not cursor.take("["):
        return (dtype, None), []
    dims, starts = _read_dims(cursor)
    return (dtype, dims), starts


def read_dtype(cursor: Cursor) -> AnyDType | str | None:
    """Read a dtype or a type variable; return None for ``_``."""
    start = cursor.position
    token = cursor.match(_DTYPE)
    if token is None:
        raise cursor.unexpected("a dtype or '['")
    if token == "_":
        return None
    if token.lstrip("<>=|") in ("datetime64", "timedelta64", "M8", "m8"):
        token += cursor.match(_UNIT) or ""
    dtype = dtype_named(token)
    if dtype is None:
        raise cursor.error(f"{token[:80]!r} is not a dtype: {expected_dtype(token)}", start)
    return dtype


def _read_dims(cursor: Cursor) -> tuple[tuple[DimLike, ...], list[int]]:
    dims: list[DimLike] = []
    starts: list[int] = []
    cursor.skip()
    if cursor.take("]"):
        return (), starts
    while True:
        start = cursor.position
        dim = read_dim(cursor)
        if is_open(dim) and any(map(is_open, dims)):
            raise cursor.error("expected at most one '...' or '*name' in a spec, got a second", start)
        dims.append(dim)
        starts.append(start)
        if len(dims) > _MAX_DIMS:
            raise cursor.error(f"expected at most {_MAX_DIMS} dimensions, which is NumPy's limit", start)
        spaced = cursor.skip()
        if cursor.take("]"):
            return tuple(dims), starts
        if cursor.take(","):
            cursor.skip()
        elif cursor.at("?") or cursor.at("|"):
            raise cursor.error("expected ',' or ']': 'n?' and 'n|1' belong to gufunc declarations, '(n?),(m|1)->()'")
        elif not spaced or cursor.position >= len(cursor.text):
            raise cursor.unexpected("',' or ']'")


def read_dim(cursor: Cursor) -> DimLike:
    """Read one entry of a shape."""
    if cursor.take("..."):
        return Ellipsis
    start = cursor.position
    if cursor.take("*"):
        name = cursor.match(_NAME)
        if name is None:
            raise cursor.unexpected("a name after '*'")
        return Variadic(name)
    name = cursor.match(_NAME)
    if name is not None and cursor.take("!"):
        return Late(name)
    if name is None and cursor.take("_"):
        return Late() if cursor.take("!") else None
    cursor.position = start
    value = _sum(cursor, 0)
    if isinstance(value, int) and not 0 <= value <= MAX_SIZE:
        hint = "; an unknown size is written '_'" if value == -1 else ""
        raise cursor.error(f"expected a size from 0 to 2**63-1, got {_short(value)}{hint}", start)
    return value


def _sum(cursor: Cursor, depth: int) -> int | Dim:
    start = cursor.position
    value = _product(cursor, depth)
    while (sign := _sign(cursor, ("+", "-"), depth)) is not None:
        right = _product(cursor, depth)
        value = _checked(cursor, start, value, sign, right)
    return value


def _product(cursor: Cursor, depth: int) -> int | Dim:
    start = cursor.position
    value = _factor(cursor, depth)
    while (sign := _sign(cursor, ("*", "//"), depth)) is not None:
        at = cursor.position
        right = _factor(cursor, depth)
        if sign == "//" and isinstance(right, int) and right == 0:
            raise cursor.error("expected a divisor other than 0", at)
        value = _checked(cursor, start, value, sign, right)
    return value


def _sign(cursor: Cursor, signs: tuple[str, ...], depth: int) -> str | None:
    """Return the next operator, if it is one of these; otherwise leave the cursor before the whitespace."""
    start = cursor.position
    spaced = cursor.skip()
    for sign in signs:
        if cursor.take(sign):
            if sign == "*" and spaced and depth == 0 and _NAME.match(cursor.text, cursor.position):
                break  # "n *batch": a new dim
            cursor.skip()
            return sign
    cursor.position = start
    return None


def _factor(cursor: Cursor, depth: int) -> int | Dim:
    negative = False
    while cursor.take("-"):
        negative = not negative
        cursor.skip()
    start = cursor.position
    value: int | Dim
    if (digits := cursor.match(_INTEGER)) is not None:
        if len(digits) > 19 or int(digits) > MAX_SIZE:
            raise cursor.error("expected a number up to 2**63-1", start)
        value = int(digits)
        if _NAME.match(cursor.text, cursor.position) or cursor.at("_"):
            raise cursor.unexpected("an operator, ',' or ']' after a number")
    elif (name := cursor.match(_NAME)) is not None:
        value = Dim(name)
    elif cursor.take("("):
        if depth >= _MAX_PARENTHESES:
            raise cursor.error(f"expected at most {_MAX_PARENTHESES} parentheses inside each other", start)
        cursor.skip()
        value = _sum(cursor, depth + 1)
        cursor.skip()
        if not cursor.take(")"):
            raise cursor.unexpected("an operator or ')'")
    else:
        raise cursor.unexpected(_DIM)
    return -value if negative else value


def _checked(cursor: Cursor, start: int, left: int | Dim, sign: str, right: int | Dim) -> int | Dim:
    try:
        value: int | Dim = _OPERATIONS[sign](left, right)
    except (ValueError, ZeroDivisionError) as error:
        raise cursor.error(f"expected a simpler size: {error}", start) from None
    if isinstance(value, int) and abs(value) > MAX_SIZE:
        raise cursor.error("expected a size that fits 64 bits", start)
    return value


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**30 else "a larger one"
