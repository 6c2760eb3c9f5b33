"""Build the C++ ``Contract`` that a call checks from a `Signature`."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any

from .._core import Contract
from .._tree import flatten
from .parameters import OutMode
from .signature import Signature
from .spec import Spec

__all__ = ["OutMode", "ResultForm", "make_contract", "result_form"]


class ResultForm(IntEnum):
    """Number the forms in which a function returns the declared outputs; the C++ enum of the same name."""

    SINGLE = 0
    TUPLE = 1
    SEQUENCE = 2
    TREE = 3


def result_form(outputs: Any) -> ResultForm:
    """Return the form of a tree of output specs."""
    if outputs is None or isinstance(outputs, Spec):
        return ResultForm.SINGLE
    if type(outputs) in (tuple, list) and all(isinstance(part, Spec) for part in outputs):
        return ResultForm.TUPLE if type(outputs) is tuple else ResultForm.SEQUENCE
    return ResultForm.TREE


# Equal declarations share one Contract, so that nodes with equal declarations can be merged by identity.
@lru_cache(maxsize=4096)
def make_contract(
    signature: Signature,
    *,
    form: ResultForm | None = None,
    mutates: int = 0,
    out_mode: OutMode = OutMode.NONE,
    text_as_utf8: bool = False,
) -> Contract:
    """Return the Contract of a declaration; equal declarations share one.

    `form` is the form of the results, if not that of the output tree. Bit k of `mutates` is set if the function writes
    to input k. `text_as_utf8` treats text as the py_func family does: bytes objects in object arrays.
    """
    return new_contract(signature, None, form, mutates, out_mode, text_as_utf8)


def new_contract(
    signature: Signature,
    abstract: Any,
    form: ResultForm | None = None,
    mutates: int = 0,
    out_mode: OutMode = OutMode.NONE,
    text_as_utf8: bool = False,
    gradient: Any = None,
) -> Contract:
    """Return a new Contract, never shared, with an abstract rule and gradient rules; else as `make_contract`."""
    form = result_form(signature.outputs) if form is None else form
    tree = paths = None
    if form == ResultForm.TREE:
        tree = flatten(signature.outputs)[1]
        paths = tree.leaf_paths()
    return Contract(
        dict(signature.encode()),
        form=form,
        tree=tree,
        tree_paths=paths,
        mutates=mutates,
        out_mode=out_mode,
        text_as_utf8=text_as_utf8,
        abstract=abstract,
        signature=signature,
        gradient=gradient,
    )
