"""Embed functions by value in the metadata of a model, as pickles.

Functions that are written at one time are one pickle, so that they still share what they shared. Those of a loaded
model are passed on unchanged, which needs no trust in it.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from .trust import Trust

__all__ = ["Embedded"]

_KEY = "pyop.functions"


class Embedded:
    """Hold a model's functions by value: pickles of dicts, unread until a trusted caller asks for one of their names.

    The first that has a name counts.
    """

    def __init__(self, pickles: Iterable[tuple[Iterable[str], bytes]] = ()) -> None:
        self.pickles = [(tuple(names), data) for names, data in pickles]
        self._made: dict[int, dict[str, Any]] = {}

    @classmethod
    def of(cls, model: Any) -> Embedded:
        """Return those of a model; ValueError if its metadata are malformed."""
        text = next((entry.value for entry in model.metadata_props if entry.key == _KEY), "[]")
        try:
            return cls([(map(str, item["names"]), base64.b85decode(item["pickle"])) for item in json.loads(text)])
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"the metadata {_KEY!r} of the model are malformed: {error!r:.200}") from None

    def add_to(self, model: Any) -> None:
        """Write them into the metadata of a model."""
        if self.pickles:
            entries = [{"names": names, "pickle": base64.b85encode(data).decode()} for names, data in self.pickles]
            model.metadata_props.add(key=_KEY, value=json.dumps(entries))

    def with_objects(self, objects: Mapping[str, Any], found_in: Mapping[str, str] | None = None) -> Embedded:
        """Return these with more objects, stored now; ValueError, with the place, for one that has no pickle."""
        if not objects:
            return self
        try:
            import cloudpickle
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "embed=True needs the package 'cloudpickle': pip install 'pyop-core[onnx]'", name="cloudpickle"
            ) from None
        try:
            data = cloudpickle.dumps(dict(objects))
        except Exception as error:
            name = _culprit(objects)
            raise ValueError(
                f"{(found_in or {}).get(name, '')}{name!r} cannot be stored by value: what it refers to must be "
                f"picklable ({type(error).__name__}: {error!s:.300})"
            ) from error
        return Embedded([(objects, data), *self.pickles])

    def __contains__(self, name: str) -> bool:
        return any(name in names for names, _ in self.pickles)

    def __getstate__(self) -> Any:
        return {"pickles": self.pickles, "_made": {}}

    def get(self, name: str, trust: Trust) -> Any:
        """Return the object of a name, or a str with the reason. Runs code of the model, if it is trusted so far."""
        if not trust.pickles:
            return 'the model stores it by value, and only trust="pickles" makes such functions'
        k, data = next((k, data) for k, (names, data) in enumerate(self.pickles) if name in names)
        if k not in self._made:
            made = pickle.loads(data)
            self._made[k] = dict(made) if isinstance(made, dict) else {}
        return self._made[k].get(name, "the pickle in the model does not hold it")


def _culprit(objects: Mapping[str, Any]) -> str:
    import cloudpickle

    for name, value in objects.items():
        try:
            cloudpickle.dumps(value)
        except Exception:
            return name
    return "what the graph calls"
