"""`find_package(pyop)`, and C files compiled by the flags of `pyop-config`."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import pyop
from pyop.__main__ import config_main, main

from .building import CC, CXX, STRICT, config, needs_compilers, run

CMAKE = shutil.which("cmake")
GENERATORS = {"ninja": "Ninja", "make": "Unix Makefiles"}
GENERATOR = next((name for tool, name in GENERATORS.items() if shutil.which(tool)), None)
needs_cmake = pytest.mark.skipif(None in (CMAKE, GENERATOR), reason="needs CMake, and ninja or make")
USER = """
#include <pyop/entry.h>
#include <pyop/version.h>
int apply(const pyop_plan* plan, double x, double* y) {
    const void* in[1];
    void* out[1];
    in[0] = &x;
    out[0] = y;
    return pyop_plan_call(plan, in, out) + 1000 * PYOP_VERSION_MAJOR;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.15)
project(user LANGUAGES C CXX)
find_package(pyop {version} CONFIG REQUIRED)
find_package(pyop CONFIG REQUIRED)
message(STATUS "pyop ${{pyop_VERSION}} in ${{pyop_INCLUDE_DIR}}")
add_library(user MODULE user.c)
target_link_libraries(user PRIVATE pyop::headers)
"""


def applied(library: Path) -> tuple[int, float]:
    plan = pyop.trace(lambda x: 2 * x + 1, "float64[]").compile()
    function = ctypes.CDLL(str(library)).apply
    function.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]
    y = ctypes.c_double()
    return function(plan.address, 3.0, ctypes.byref(y)), y.value


@needs_compilers
def test_c_by_the_flags(tmp_path):
    (tmp_path / "user.c").write_text(USER)
    run(CC, "-std=c99", *STRICT, *config("--includes"), "-shared", "-fPIC", "user.c", "-o", "user.so", cwd=tmp_path)
    assert applied(tmp_path / "user.so") == (0, 7.0)


LATE = """
#include <pyop/python.h>
#include <stdlib.h>
static const pyop_plan* last;
static void late(void) {
    const double x = 1;
    double y = 0;
    const void* in[1];
    void* out[1];
    in[0] = &x;
    out[0] = &y;
    _Exit(pyop_call(last, in, out) == 0 && y == 2.0 ? 10 : 11);
}
int keep(const pyop_plan* plan) { last = plan; return atexit(late); }
"""


@needs_compilers
def test_pyop_call_when_python_has_ended(tmp_path):
    (tmp_path / "late.c").write_text(LATE)
    run(CC, *config("--cflags"), "-shared", "-fPIC", "late.c", "-o", "late.so", cwd=tmp_path)
    for text, code in ("2 * x", 10), ("pyop.py_func(lambda v: 2 * v, [x], 'float64[]')", 11):
        program = f"""
import ctypes, pyop
plan = pyop.trace(lambda x: {text}, "float64[]").compile()
library = ctypes.CDLL({str(tmp_path / "late.so")!r})
library.keep.argtypes = [ctypes.c_void_p]
library.keep(plan.address)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (code, b"")


@needs_compilers
@pytest.mark.parametrize("standard", ["c99", "c17", "c++17"])
def test_every_header_is_clean(tmp_path, standard):
    """Alone and together, in every order that a reader may choose, with Python's own headers beside."""
    names = sorted(path.name for path in Path(pyop.get_include(), "pyop").glob("*.h"))
    assert {"entry.h", "python.h", "version.h"} <= set(names)
    compiler = [CXX, "-x", "c++"] if "++" in standard else [CC, "-x", "c"]
    python = ["-isystem", sysconfig.get_path("include"), "-isystem", sysconfig.get_path("platinclude")]
    for k, chosen in enumerate([*([name] for name in names), names, names[::-1]]):
        # CPython asks to come first, and defines what others do not expect.
        first = "#include <Python.h>\n" if "python.h" in chosen else ""
        source = tmp_path / f"headers_{k}.x"
        source.write_text(first + "".join(f"#include <pyop/{name}>\n" for name in chosen) + "int nothing;\n")
        flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
        for limit in ([], ["-DPy_LIMITED_API=0x030b0000"]) if "python.h" in chosen else ([],):
            run(*compiler, f"-std={standard}", *flags, *limit, "-I", pyop.get_include(), *python, source)


@needs_compilers
@needs_cmake
@pytest.mark.parametrize("copied", [False, True], ids=["in place", "moved"])
def test_find_package(tmp_path, copied):
    """A copy elsewhere serves as well: nothing in it knows where it was made."""
    folder = Path(pyop.get_cmake_dir())
    if copied:
        for part in ("cmake", "include"):
            shutil.copytree(folder.parent / part, tmp_path / "moved" / "pyop" / part)
        folder = tmp_path / "moved/pyop/cmake"
    (tmp_path / "user.c").write_text(USER)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version="0.1"))
    # By its own folder, and as scikit-build-core looks: with site-packages among the prefixes.
    way = f"-DCMAKE_PREFIX_PATH={folder.parents[1]}" if copied else f"-Dpyop_DIR={config('--cmakedir')[0]}"
    said = run(CMAKE, "-G", GENERATOR, "-S", ".", "-B", "build", way, cwd=tmp_path)
    assert f"pyop {pyop.__version__} in {folder.parent / 'include'}" in said
    run(CMAKE, "--build", "build", cwd=tmp_path)
    (library,) = (tmp_path / "build").glob("*user.so")
    assert applied(library) == (0, 7.0)


@needs_compilers
@needs_cmake
def test_cmake_says_what_is_wrong(tmp_path):
    (tmp_path / "user.c").write_text(USER)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version="7.0"))
    command = [CMAKE, "-G", GENERATOR, "-S", ".", "-B", "build"]
    way = f"-Dpyop_DIR={pyop.get_cmake_dir()}"
    done = subprocess.run([*command, way], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert 'requested version "7.0"' in done.stderr
    assert f"version: {pyop.__version__}" in done.stderr
    shutil.copytree(pyop.get_cmake_dir(), tmp_path / "torn/cmake")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(version=""))
    way = f"-Dpyop_DIR={tmp_path / 'torn/cmake'}"
    done = subprocess.run([*command, way], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is no longer part of an installed pyop" in " ".join(done.stderr.split())


def test_pyop_config(capsys, monkeypatch):
    assert config_main(["--version", "--cmakedir", "--includes", "--cflags"]) == 0
    version, cmake, includes, cflags = capsys.readouterr().out.splitlines()
    assert (version, cmake, includes) == (pyop.__version__, pyop.get_cmake_dir(), f"-I{pyop.get_include()}")
    assert cflags.startswith(includes + " -I")
    assert Path(cflags.rpartition(" -I")[2], "Python.h").is_file()
    assert main(["config", "--version"]) == 0
    assert capsys.readouterr().out == f"{pyop.__version__}\n"
    for program, arguments in ((config_main, []), (main, ["config"])):
        assert program(arguments) == 2
        assert "say what to print: --includes, --cflags" in capsys.readouterr().err
    monkeypatch.setattr("pyop.config.get_include", lambda: "/a folder/include")
    assert config_main(["--includes"]) == 0
    assert capsys.readouterr().out == "-I'/a folder/include'\n"


def test_the_script_is_installed():
    script = Path(sysconfig.get_path("scripts"), "pyop-config")
    if not script.is_file():
        pytest.skip(f"this pyop was not installed with its scripts: there is no {script}")
    done = subprocess.run([script, "--cmakedir"], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout == pyop.get_cmake_dir() + "\n"
    assert run(sys.executable, "-m", "pyop", "config", "--cmakedir") == done.stdout
