"""What is read off a function's code at once, against its instructions one by one."""

from __future__ import annotations

import argparse
import dis
import inspect
import json.decoder
import types
from collections.abc import Iterator

import numpy as np
import pytest

from pyop.tracing import code as reader


def functions_in(module: types.ModuleType) -> Iterator[types.FunctionType]:
    for thing in vars(module).values():
        members = vars(thing).values() if isinstance(thing, type) else (thing,)
        yield from (x for x in members if isinstance(x, types.FunctionType))


def names_of_instructions(code: types.CodeType) -> set[str]:
    return {op.opname for part in reader.codes(code) for op in dis.get_instructions(part)}


@pytest.mark.parametrize(
    "module", [argparse, inspect, json.decoder, np.lib._function_base_impl], ids=lambda m: m.__name__
)
def test_what_catches_and_what_compares_by_is(module: types.ModuleType) -> None:
    seen = set()
    for function in functions_in(module):
        names = names_of_instructions(function.__code__)
        found = reader.facts(function.__code__)
        assert found.catches == ("PUSH_EXC_INFO" in names), function
        assert found.asks_is == ("IS_OP" in names), function
        seen.add((found.catches, found.asks_is))
    assert len(seen) > 1


def test_functions_without_names_and_functions_inside() -> None:
    def bare(a, b):
        return (1, a) if a is b else 2

    def outer(a):
        def inner(b):
            try:
                return a + b
            except TypeError:
                return b

        return inner

    assert reader.facts(bare.__code__).asks_is
    assert not reader.facts(bare.__code__).catches
    assert reader.facts(outer.__code__).catches
    assert not reader.facts(outer.__code__).asks_is
