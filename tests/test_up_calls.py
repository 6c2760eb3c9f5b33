"""The list of what C++ calls in Python (csrc/runtime/up_calls.h), and what python/pyop/up_calls.py installs for it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

import pyop
from pyop import _core
from pyop.up_calls import ATTRIBUTES, CALLS, install

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
