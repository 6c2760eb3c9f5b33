"""The C++ tree as tests/layers.toml has it: what includes what, and files that say what they are for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import pyop

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"
FILES = sorted(path.relative_to(CSRC).as_posix() for path in CSRC.rglob("*") if path.suffix in {".cpp", ".h"})
SHARED = {"precompiled.h"}  # of the build, for all of csrc
ABOVE = {"core_init.cpp", "core_init.h"}  # which `src/` calls
FOREIGN = {"Python.h"}  # of CPython
PUBLIC = "include/pyop/"  # plain C, knows nothing of csrc


LAYERS: dict[str, list[str]] = tomllib.loads((ROOT / "tests/layers.toml").read_text())
FOLDERS = [name for name in LAYERS["csrc"] if name != PUBLIC]
ROOMS = [name.removesuffix(".h") for name in LAYERS["array"]]


def includes(file: str) -> list[str]:
    return re.findall(r'^#include "([^"]+)"', (CSRC / file).read_text(), re.MULTILINE)


def place(file: str, places: list[str]) -> int:
    """The number of the place in the list that holds the file."""
    return next(k for k, name in enumerate(places) if file.startswith(name))


def upward(places: list[str]) -> list[str]:
    """What is included from a place further down in the list."""
    files = [file for file in FILES if any(file.startswith(name) for name in places)]
    return [
        f"{file} includes {other}"
        for file in files
        for other in includes(file)
        if any(other.startswith(name) for name in places) and place(other, places) > place(file, places)
    ]


def test_the_layers_hold_every_folder():
    parts = {path.name + "/" for path in CSRC.iterdir() if path.is_dir() and path.name != "include"}
    assert len(FOLDERS) == len(set(FOLDERS))
    assert set(FOLDERS) == parts
    rooms = {"array/" + path.name + "/" for path in (CSRC / "array").iterdir() if path.is_dir()}
    assert set(ROOMS) == {"array/numpy", *rooms}
    outside = {file for file in FILES if not any(file.startswith(name) for name in [*FOLDERS, PUBLIC])}
    assert outside == SHARED | ABOVE
    assert [file for file in FILES if file.startswith("array/") and not file.startswith(tuple(ROOMS))] == []


def test_nothing_includes_what_is_above_all():
    assert [file for file in FILES if file not in ABOVE and ABOVE & set(includes(file))] == []


@pytest.mark.parametrize("places", [FOLDERS, ROOMS], ids=["csrc", "array"])
def test_nothing_is_included_from_further_down(places):
    assert upward(places) == []


def test_nothing_is_included_that_is_not_there():
    missing = [f"{file} includes {other}" for file in FILES for other in includes(file) if other not in FILES]
    assert missing == []


def test_headers_go_in_no_circle():
    done: set[str] = set()

    def visit(file: str, way: tuple[str, ...]) -> None:
        assert file not in way, " -> ".join([*way, file])
        if file not in done:
            for other in includes(file):
                visit(other, (*way, file))
            done.add(file)

    for file in FILES:
        visit(file, ())


@pytest.mark.parametrize("folder", ["csrc", "src", "tests/cpp"])
def test_every_file_opens_with_what_it_is_for(folder):
    mute = []
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in {".cpp", ".h"}:
            name = path.relative_to(CSRC if folder == "csrc" else ROOT).as_posix()
            if not re.match(rf"(//|/\*) {name.removeprefix('include/')}: \S", path.read_text()):
                mute.append(name)
    assert mute == []


def test_files_that_comments_name_are_there():
    names = FOREIGN | {
        path.name for top in ("csrc", "src", "tests", "python", "cmake") for path in (ROOT / top).rglob("*.*")
    }
    dead = []
    for file in FILES:
        for line in re.findall(r"//(.*)", (CSRC / file).read_text()):
            for path in re.findall(r"[\w/]+\.(?:cpp|h|py)\b(?!:\d)", line):
                roots = (ROOT, CSRC, ROOT / "python")
                if not (any((root / path).is_file() for root in roots) if "/" in path else path in names):
                    dead.append(f"{file}: {path}")
    assert dead == []


def test_the_header_of_the_wheel_has_this_version():
    text = (CSRC / PUBLIC / "version.h").read_text()
    numbers = [re.search(rf"PYOP_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    assert ".".join(numbers) == re.match(r"\d+\.\d+\.\d+", pyop.__version__)[0]


def test_no_lock_of_a_static_is_held_while_python_runs():
    """What a function keeps of Python is made by `Lazy` (runtime/lazy.h): a static's initialiser runs under a lock."""
    kept = re.compile(r"^\s+static (?:PyObject\*|Ref|SharedRef)(?: const)? \w+ =(?!\s*nullptr;)", re.MULTILINE)
    assert not [file for file in FILES if kept.search((CSRC / file).read_text())]
