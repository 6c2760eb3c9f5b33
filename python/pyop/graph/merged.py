"""Results of a plan that are one array because equal nodes have become one node, and two in NumPy."""

from __future__ import annotations

__all__ = ["Owners", "merges_copies"]

Owners = list[tuple[int, int | None, list[tuple[int, int]]] | None]  # what Plan._owners says of the results


def merges_copies(owners: Owners) -> bool:
    """Whether results show, by equal nodes that have become one, what may be a copy for each in the function's result.

    A reshape copies where an array has steps: ``return x.ravel(), np.ravel(x)`` are two arrays then. Of two equal
    arrays each result gets one; where one of them is there twice, or with a view, nobody could tell whose that is.
    """
    written: dict[int, int] = {}
    names: dict[int | None, list[int]] = {}
    for owner in owners:
        if owner is None:
            continue
        names.setdefault(owner[1], []).append(owner[0])
        if any(written.setdefault(merged, node) != node for node, merged in owner[2]):
            return True
    return any(1 < len(set(arrays)) < len(arrays) for arrays in names.values())
