"""Report the build and the interpreter, check both, and locate the headers.

This module is imported before the rest, so that a missing requirement gives one clear sentence. Interpreters that
pyop does not support import it too, so it uses no syntax that they may lack.
"""

from __future__ import annotations

import sys

__all__ = ["build_config", "get_cmake_dir", "get_include"]


def build_config() -> dict[str, dict[str, str]]:
    """Return how pyop was built and what it runs on.

    The first thing to put in a bug report. ``python -m pyop info`` prints it.

    Returns
    -------
    dict
        ``"build"`` holds what was fixed when the extension was compiled: version, compiler, build type,
        sanitizers (empty if none), and the versions of Python, NumPy, pybind11 and Cython.
        ``"run"`` holds what is there now: interpreter, NumPy, platform, and the file of the extension.

    Examples
    --------
    >>> import pyop
    >>> sorted(pyop.build_config())
    ['build', 'run']
    >>> pyop.build_config()["build"]["version"] == pyop.__version__
    True
    """
    import platform

    import numpy as np

    from . import _core

    return {
        "build": {key: str(value) for key, value in _core.build_info.items()},
        "run": {
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "numpy": np.__version__,
            "platform": f"{sys.platform} {platform.machine()}",
            "extension": _core.__file__,
        },
    }


def get_include() -> str:
    """Return the folder to give a C compiler, or Cython, as ``-I``, for ``#include <pyop/…>`` and ``cimport pyop``.

    Returns
    -------
    str
        An absolute path, in an editable install too.

    See Also
    --------
    get_cmake_dir

    Examples
    --------
    >>> import os, pyop
    >>> os.path.isdir(os.path.join(pyop.get_include(), "pyop"))
    True
    """
    return _installed("include")


def get_cmake_dir() -> str:
    """Return the folder to give CMake as ``pyop_DIR``, for ``find_package(pyop CONFIG)`` and ``pyop::headers``.

    Returns
    -------
    str
        An absolute path, in an editable install too. ``pyop-config --cmakedir`` prints it.

    See Also
    --------
    get_include

    Examples
    --------
    >>> import os, pyop
    >>> os.path.isfile(os.path.join(pyop.get_cmake_dir(), "pyopConfig.cmake"))
    True
    """
    return _installed("cmake")


def _installed(folder: str) -> str:
    # Not Path(__file__).parent: an editable install keeps the Python files and the installed headers apart.
    import importlib.resources  # on first use: it brings zipfile, tempfile and more

    return str(importlib.resources.files(__package__).joinpath(folder))


_WHERE = "pyop runs on CPython 3.11 or newer on Linux with glibc"


def _check_interpreter() -> None:
    name, version = sys.implementation.name, tuple(sys.version_info[:2])
    if name != "cpython" or version < (3, 11):
        raise ImportError(f"{_WHERE}; this is {name} with Python {version[0]}.{version[1]} ({sys.executable})")


def _check_numpy() -> None:
    remedy = f"install it: {sys.executable} -m pip install 'numpy>=2'"
    try:
        import numpy
    except ImportError as error:
        raise ImportError(f"pyop needs NumPy 2.0 or newer, which cannot be imported ({error}); {remedy}") from error
    if int(numpy.__version__.partition(".")[0]) < 2:
        raise ImportError(
            f"pyop needs NumPy 2.0 or newer, and this is {numpy.__version__} ({numpy.__file__}); {remedy}"
        )


def _check_core() -> None:
    """Import the extension modules; the error says why that fails, and what to do."""
    from importlib import import_module

    for module in ("_core", "_tree"):
        try:
            import_module(f"pyop.{module}")
        except ImportError as error:
            if any(told in str(error) for told in ("interpreter", "the GIL off")):  # said by the core itself
                raise
            raise ImportError(_why(module, error)) from error


def _why(module: str, error: ImportError) -> str:
    import os
    from importlib.machinery import EXTENSION_SUFFIXES

    folder = os.path.dirname(os.path.abspath(__file__))
    built = [
        name for name in sorted(os.listdir(folder)) if name.startswith(module + ".") and name.endswith((".so", ".pyd"))
    ]
    if isinstance(error, ModuleNotFoundError) and error.name == f"pyop.{module}":
        has = f"it has {', '.join(built)}" if built else "it has not been built"
        what = f"pyop in {folder} is not for this interpreter ({EXTENSION_SUFFIXES[0]}): {has}"
    else:
        what = f"pyop in {folder} cannot be loaded here ({error})"
    return f"{what}; {_WHERE}, installed by the interpreter that imports it: {sys.executable} -m pip install …"


_check_interpreter()
_check_numpy()
_check_core()
