"""Read the declaration of a function: typed, ``"float64[n], T[n] -> T[]"``, or gufunc, ``"(n,m),(m)->(n)"``.

A text is a gufunc declaration if its first input is sizes in parentheses. ``()`` alone before the arrow also means
"no inputs", if the text after the arrow is typed: ``"() -> float64[3]"``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .dim import MAX_SIZE, Dim
from .marks import Broadcast, DimLike, Late, Optional
from .spec import Spec
from .spec_text import Cursor, read_spec

__all__ = ["Place", "SignatureText", "read_signature", "read_spec_list"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]+")
_INTEGER: Final = re.compile(r"[0-9]+")
_NO_INPUTS: Final = re.compile(r"\(\s*\)\s*->(?!\s*\()", re.ASCII)


class Place(NamedTuple):
    """Hold where a spec stands in the text: its start and those of its dims."""

    start: int
    dims: list[int]


class SignatureText(NamedTuple):
    """Hold what a text declares."""

    inputs: list[Spec]
    outputs: list[Spec]
    gufunc: bool
    places: dict[str, list[Place]]  # "input" and "output"


def read_signature(text: str) -> SignatureText:
    """Read a declaration in either form."""
    cursor = Cursor(text)
    cursor.skip()
    if cursor.at("(") and not _NO_INPUTS.match(text, cursor.position):
        return _read_gufunc(cursor)
    inputs: list[Spec] = []
    input_places: list[Place] = []
    if cursor.take("("):
        cursor.skip()
        cursor.take(")")
        cursor.skip()
    elif not cursor.at("->"):
        inputs, input_places = _read_typed(cursor)
    if not cursor.take("->"):
        if cursor.position >= len(text):
            raise cursor.error("expected '->' and the outputs, got the end; outputs alone are given by outputs=")
        raise cursor.unexpected("',' or '->'" if inputs and inputs[-1].shape is not None else "'[', ',' or '->'")
    outputs, output_places = _read_outputs(cursor)
    return SignatureText(inputs, outputs, False, {"input": input_places, "output": output_places})


def read_spec_list(text: str) -> list[Spec]:
    """Read specs separated by commas; ``()`` for none."""
    return _read_outputs(Cursor(text))[0]


def _read_outputs(cursor: Cursor) -> tuple[list[Spec], list[Place]]:
    cursor.skip()
    specs: list[Spec] = []
    places: list[Place] = []
    if cursor.take("("):
        cursor.skip()
        if not cursor.take(")"):
            raise _mixed(cursor)
    else:
        specs, places = _read_typed(cursor)
    if not cursor.at_end():
        raise cursor.unexpected("',' or the end")
    return specs, places


def _read_typed(cursor: Cursor) -> tuple[list[Spec], list[Place]]:
    specs: list[Spec] = []
    places: list[Place] = []
    while True:
        cursor.skip()
        if cursor.at("("):
            raise _mixed(cursor)
        start = cursor.position
        (dtype, shape), dims = read_spec(cursor)
        specs.append(Spec(dtype, shape))
        places.append(Place(start, dims))
        cursor.skip()
        if not cursor.take(","):
            return specs, places


def _mixed(cursor: Cursor) -> ValueError:
    return cursor.error(
        "expected a typed spec such as float64[n]: sizes in parentheses make a gufunc declaration, "
        "'(n),(m)->(n)', in which every input and output is written so"
    )


# --- gufunc


def _read_gufunc(cursor: Cursor) -> SignatureText:
    inputs, input_places = _read_core(cursor, output=False)
    if not cursor.take("->"):
        raise cursor.unexpected("',' or '->'")
    outputs, output_places = _read_core(cursor, output=True)
    if not cursor.at_end():
        raise cursor.unexpected("',' or the end")
    return SignatureText(inputs, outputs, True, {"input": input_places, "output": output_places})


def _read_core(cursor: Cursor, output: bool) -> tuple[list[Spec], list[Place]]:
    specs: list[Spec] = []
    places: list[Place] = []
    while True:
        cursor.skip()
        start = cursor.position
        if not cursor.take("("):
            raise cursor.unexpected("'(', sizes and ')', as every part of a gufunc declaration")
        dims: list[DimLike] = []
        starts: list[int] = []
        cursor.skip()
        closed = cursor.take(")")
        while not closed:
            cursor.skip()
            starts.append(cursor.position)
            dims.append(_read_core_dim(cursor, output))
            cursor.skip()
            closed = cursor.take(")")
            if not closed and not cursor.take(","):
                raise cursor.unexpected("',' or ')': the sizes of a gufunc declaration are names and numbers")
            if len(dims) > 64:
                raise cursor.error("expected at most 64 dimensions, which is NumPy's limit", start)
        specs.append(Spec(None, dims))
        places.append(Place(start, starts))
        cursor.skip()
        if not cursor.take(","):
            return specs, places


def _read_core_dim(cursor: Cursor, output: bool) -> DimLike:
    start = cursor.position
    digits = cursor.match(_INTEGER)
    if digits is not None:
        if len(digits) > 19 or int(digits) > MAX_SIZE:
            raise cursor.error("expected a number up to 2**63-1", start)
        if cursor.at("?") or cursor.at("|") or cursor.at("!"):
            raise cursor.error("expected ',' or ')' after a number: only a named size can be optional, 1 or late")
        return int(digits)
    name = cursor.match(_NAME)
    if name is None:
        raise cursor.unexpected("a name or a number")
    if cursor.take("?"):
        return Optional(name)
    at = cursor.position
    if cursor.take("|"):
        if cursor.match(_INTEGER) != "1":
            raise cursor.error("expected '|1' after a name: the size may then also be 1", at)
        if output:
            raise cursor.error("expected a size that the inputs fix: 'n|1' stands in inputs only", start)
        return Broadcast(name)
    if cursor.take("!"):
        if not output:
            raise cursor.error("expected a size that is known before the call: 'n!' stands in outputs only", start)
        return Late(name)
    return Dim(name)
