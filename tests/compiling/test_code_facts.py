"""What `tracing.code` reads off the bytes of a function, against `dis`, for the code of the standard library."""

import argparse
import dis
import inspect
import json.decoder
import statistics
import tarfile
import textwrap
import types

import pytest

from pyop.compiling.unused_arguments import unread
from pyop.tracing import code as reader

MODULES = (argparse, inspect, json.decoder, statistics, tarfile, textwrap)


def _codes(module):
    found = []
    for x in vars(module).values():
        for part in (x, *(vars(x).values() if isinstance(x, type) else ())):
            if isinstance(part, types.FunctionType) and part.__module__ == module.__name__:
                found.append(part.__code__)
    return found


def _globals(code):
    """Of the code and all in it."""
    names = {op.argval for op in dis.get_instructions(code) if op.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, types.CodeType)))


def _variables(code):
    """Names of locals that its instructions load, store or delete; those with two have them as one argument."""
    found = set()
    for op in dis.get_instructions(code):
        if "_FAST" in op.opname:
            found.update(op.argval if isinstance(op.argval, tuple) else (op.argval,))
    return found


COUNTS = {"range", "enumerate", "zip", "int", "round"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_globals_and_loops_are_those_of_dis(module):
    codes = _codes(module)
    assert codes
    for code in codes:
        found = reader.facts(code)
        assert found.globals_read == _globals(code), code
        jumps = any("JUMP_BACKWARD" in op.opname for op in dis.get_instructions(code))
        assert found.loops == (jumps or not COUNTS.isdisjoint(_globals(code))), code


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_parameters_that_dis_sees_read_are_not_called_unread(module):
    for code in _codes(module):
        fn = types.FunctionType(code, {}, closure=tuple(types.CellType() for _ in code.co_freevars) or None)
        read = _variables(code) | set(code.co_cellvars)
        named = code.co_varnames[: code.co_argcount]
        assert not {named[k] for k in unread(fn)} & read, code
        if {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "inspect"}.isdisjoint(code.co_names):
            assert {named[k] for k in unread(fn)} == set(named) - read, code


def test_facts_are_of_the_code_itself_and_not_of_an_equal_one_that_is_gone():
    for k in range(5000):  # more than are kept, whose ids come again
        scope = {}
        exec(f"def f(x): return name_{k % 7}(x)", scope)
        assert reader.facts(scope["f"].__code__).globals_read == {f"name_{k % 7}"}
