"""How this copy of pyop was built, and where its headers lie."""

from __future__ import annotations

import sys

import numpy as np

from . import _core

__all__ = ["build_config", "get_include"]


def build_config() -> dict[str, dict[str, str]]:
    """What pyop was built with and what it runs on.

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
    """The folder to give a C compiler as ``-I`` for ``#include <pyop/…>``.

    Returns
    -------
    str
        An absolute path, in an editable install too.

    Examples
    --------
    >>> import os, pyop
    >>> os.path.isdir(os.path.join(pyop.get_include(), "pyop"))
    True
    """
    # Not Path(__file__).parent: an editable install keeps the Python files and the installed headers apart.
    import importlib.resources  # on first use: it brings zipfile, tempfile and more

    return str(importlib.resources.files(__package__).joinpath("include"))
