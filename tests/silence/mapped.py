"""A program over a leading axis, against a loop of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyop

from .arguments import make
from .compare import differs, kept, state_of
from .derivatives import leaves
from .judge import LEFT_OUT, RIGHT, WRONG, Outcome, called, refusal
from .programs import Entry

SEEDS = (1, 2, 3)


def everything(tree: Any) -> list[Any]:
    """The leaves of a result, texts and counts included."""
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in everything(item)]
    return [leaf for item in tree.values() for leaf in everything(item)] if isinstance(tree, dict) else [tree]


def judge_mapped(entry: Entry, *, compiled: bool) -> Outcome:
    """Programs of arrays that keep no state; what comes back is compared leaf by leaf, nearly (other loops run)."""
    made = [make(entry.arguments, seed) for seed in SEEDS]
    arrays = all(
        type(a) is np.ndarray and a.ndim and a.flags.writeable and a.flags.c_contiguous for each in made for a in each
    )
    if entry.factory or not arrays or not made[0]:
        return LEFT_OUT, ""
    calls = [called(entry.function, each, lambda: None, 1) for each in made]
    if any(call.error is not None or not leaves(call.result) for call in calls):
        return LEFT_OUT, ""
    parts = [leaf for call in calls for leaf in everything(call.result)]
    if not all(isinstance(leaf, np.ndarray | np.generic | float) for leaf in parts):
        return LEFT_OUT, ""
    shapes = {str([np.shape(leaf) for leaf in leaves(call.result)]) for call in calls}
    if len(shapes) > 1:
        return LEFT_OUT, ""
    want = [
        np.stack([np.asarray(x) for x in each]) for each in zip(*(leaves(call.result) for call in calls), strict=True)
    ]
    given = [np.stack(each) for each in zip(*(make(entry.arguments, seed) for seed in SEEDS), strict=True)]
    before = state_of(given)
    run: Any = pyop.vmap(entry.function)
    got = called(pyop.compile(run) if compiled else run, given, lambda: None, 1)
    if got.error is not None:
        if differs(before, got.arguments):
            return WRONG, f"refused half-way: {got.error}"
        return refusal(got.error, entry)
    after = kept([np.stack(each) for each in zip(*made, strict=True)])
    if different := differs(after, given, "arguments"):
        return WRONG, different
    found = leaves(got.result)
    if len(found) != len(want):
        return WRONG, f"{len(found)} results instead of {len(want)}"
    for k, (x, y) in enumerate(zip(want, found, strict=True)):
        y = np.asarray(y)
        if x.dtype.kind in "fc":
            same = (
                x.dtype == y.dtype
                and x.shape == y.shape
                and np.allclose(x, y, 1e-4 if x.itemsize < 8 else 1e-11, 0, True)
            )
        else:
            same = not differs(x, y)
        if not same:
            return WRONG, f"result {k}: {x!r} in a loop, {y!r} mapped".replace("\n", "")[:300]
    return RIGHT, ""
