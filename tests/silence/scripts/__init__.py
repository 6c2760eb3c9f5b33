"""Scripts made by chance: classes, modules, imports and state around a function that is called while the world changes.

`made` (beside this package) writes programs of array statements. Here the arrays are few, and what stands around them
is much: classes with rules of their own, names bound anew between calls, imports inside, containers, both orders of
memory, scalars made into arrays, Functions, files, draws; and all that a caller can tell of results: types, flags,
order, identity, shared memory, warnings.
"""
