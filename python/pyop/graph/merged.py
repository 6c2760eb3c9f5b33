"""Find results of a plan that are one array, as equal nodes are merged, but two arrays in NumPy."""

from __future__ import annotations

__all__ = ["Owners", "merges_copies"]

Owners = list[tuple[int, int | None, list[tuple[int, int]]] | None]  # what Plan._owners says of the results


def merges_copies(owners: Owners) -> bool:
    """Return whether merged nodes make results share what may be separate copies in the function's result.

    A reshape copies where an array has steps: ``return x.ravel(), np.ravel(x)`` are then two arrays. Of two equal
    arrays each result gets one. Where one of them is there twice, or with a view, nobody could tell whose that is.
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
