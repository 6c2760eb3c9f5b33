"""The library of kernels.c, compiled once for all tests of this folder."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
NO_COMPILER = "no C compiler: cc, gcc or clang is needed to build tests/native/kernels.c"


@functools.cache
def folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="pyop-native-")
    atexit.register(made.cleanup)
    return Path(made.name)


@functools.cache
def library() -> Path | None:
    if COMPILER is None:
        return None
    made = folder() / "kernels.so"
    source = Path(__file__).with_name("kernels.c")
    subprocess.run(
        [COMPILER, "-std=c11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", made, source, "-lm"], check=True
    )
    return made
