"""Code of others, compiled against the pyop at hand by what pyop itself says of compilers."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
CXX = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
needs_compilers = pytest.mark.skipif(not (CC and CXX), reason="needs a C and a C++ compiler")
# What Cython itself writes is not quite clean of the second.
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized"]


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@cache
def config(option: str) -> list[str]:
    """What `pyop-config` says."""
    return shlex.split(run(sys.executable, "-m", "pyop", "config", option))


def has_openmp(folder: Path) -> bool:
    (folder / "openmp.c").write_text("#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n")
    command = [CC, "-fopenmp", "-shared", "-fPIC", "openmp.c", "-o", "openmp.so"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def extension(
    folder: Path, name: str, source: str, *, cplus: bool = False, flags: tuple[str, ...] = (), include: str = ""
) -> Path:
    """A Cython module of that source, by the `cython` at hand: its file."""
    (folder / f"{name}.pyx").write_text(source)
    written = f"{name}.cpp" if cplus else f"{name}.c"
    found = [f"-I{include}"] if include else config("--includes")
    cython = [sys.executable, "-m", "cython", "-Werror", *found, *(["--cplus"] if cplus else [])]
    run(*cython, f"{name}.pyx", "-o", written, cwd=folder)
    compiler = [CXX, "-std=c++17"] if cplus else [CC, "-std=c99"]
    python = [flag.replace("-I", "-isystem", 1) for flag in config("--cflags") if flag not in config("--includes")]
    made = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    run(*compiler, "-O1", *STRICT, *found, *python, *flags, "-shared", "-fPIC", written, "-o", made, cwd=folder)
    return made


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
