"""A model in a file that is whole or not there."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["save_model"]


def save_model(model: Any, path: Any) -> None:
    """Write a model into a file, whole or not at all; an OSError names that file, and not the part beside it."""
    path = os.fspath(path)
    part = f"{path}.part-{os.getpid()}"
    data = model.SerializeToString()
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as error:
        told = OSError(error.errno, error.strerror, path)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            told.add_note(f"there is no folder {folder!r}: os.makedirs makes it")
        raise told from None
    finally:
        if os.path.exists(part):
            os.unlink(part)
