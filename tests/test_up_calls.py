"""The list of what C++ calls in Python (csrc/runtime/up_calls.h), and what python/pyop/up_calls.py installs for it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import pyop
from pyop import _core
from pyop.up_calls import ATTRIBUTES, CALLS, FILLED_BY, install

ROOT = Path(__file__).parents[1]
LISTED = _core.up_calls()
SOURCES = {
    path.relative_to(ROOT).as_posix().removeprefix("csrc/"): path.read_text()
    for top in ("csrc", "src")
    for path in (ROOT / top).rglob("*")
    if path.suffix in {".cpp", ".h"} and path.stem != "up_calls"
}


@pytest.mark.parametrize("kind", ["up_calls", "up_attributes"])
def test_the_list_says_who_calls(kind):
    found = defaultdict(set)
    for file, text in SOURCES.items():
        for name in re.findall(rf"\b{kind}\.(?!h\b)(\w+)", text):
            found[name].add(file)
    assert found == {name: set(files.split()) for name, (files, _) in LISTED[kind].items()}


def test_there_is_no_other_way_up():
    ways = re.compile(r'ImportModule\("pyop|m\.def\(\s*"set_')
    assert [file for file, text in SOURCES.items() if ways.search(text)] == []


def test_what_is_installed_is_what_is_called(monkeypatch):
    monkeypatch.setitem(CALLS, "value_length", lambda value: 17)
    value = pyop.Graph().input("float64[3]")
    try:
        install()
        assert len(value) == 17
    finally:
        monkeypatch.undo()
        install()
    assert len(value) == 3


def test_what_the_first_call_imports_is_there():
    later = {name: path for name, path in CALLS.items() if type(path) is tuple}
    assert len(later) > 30
    for name, (module, attribute) in later.items():
        assert callable(getattr(importlib.import_module(module), attribute)), name
    for name, owners in ATTRIBUTES.items():
        for path in (owner for owner in owners if isinstance(owner, str)):
            module, _, kind = path.rpartition(".")
            assert hasattr(getattr(importlib.import_module(f"pyop.{module}"), kind), name), path


def test_what_the_core_knows_by_identity_is_told_by_its_module():
    code = "import sys, importlib, pyop\nname, module = sys.argv[1:]\nbefore = pyop._core.up_call(name)\n"
    code += "importlib.import_module(module); print(before, '|', pyop._core.up_call(name))"
    for name, module in FILLED_BY.items():
        command = [sys.executable, "-c", code, name, f"pyop.{module}"]
        before, after = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("|")
        assert before.strip() == ("(<class 'pyop.Tensor'>,)" if name == "recorded_types" else "None"), name
        assert "BatchedArray" in after if name == "recorded_types" else "None" not in after, name


def test_the_first_call_puts_the_function_in_its_place():
    code = "import pyop; up = pyop._core.up_call; v = pyop.Graph().input('float64[3]'); first = up('value_length')\n"
    code += "print(type(first).__name__, len(v), first(v), type(up('value_length')).__name__, len(v))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_Deferred", "3", "3", "function", "3"]


def test_a_name_that_is_not_in_the_list_has_no_slot():
    for attempt in (lambda: _core.up_call("another"), lambda: _core.fill_up_call("another", len)):
        with pytest.raises(KeyError, match="another"):
            attempt()


def refused(calls, attributes, words):
    value = pyop.Graph().input("float64[3]")
    with pytest.raises(ImportError, match=words):
        _core.install_up_calls(calls, attributes)
    assert len(value) == 3  # as before


@pytest.mark.parametrize("kind", ["up_calls", "up_attributes"])
def test_each_name_that_is_missing_or_unknown_is_an_error(kind):
    whole = CALLS if kind == "up_calls" else ATTRIBUTES

    def attempt(part, words):
        refused(*((part, ATTRIBUTES) if kind == "up_calls" else (CALLS, part)), words)

    for name, (files, _) in LISTED[kind].items():
        part = {key: value for key, value in whole.items() if key != name}
        attempt(part, f"has no '{name}', which csrc/{re.escape(files)} needs")
    attempt(whole | {"another": len}, "'another' of pyop/up_calls.py is not in the list")


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_class_without_an_attribute_that_is_read_is_an_error(name):
    bare = type("Bare", (), {})
    refused(CALLS, ATTRIBUTES | {name: (*ATTRIBUTES[name], bare)}, f"Bare.* has no '{name}'")
