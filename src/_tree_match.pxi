# cython: language_level=3
"""Trees and structures held against each other. Part of `_tree`."""

cdef frozenset _PLAIN_KEYS = frozenset((str, int, bool, bytes, type(None)))


cdef bint _same_keys(tuple a, tuple b) except -1:
    """Whether two tuples hold the same keys: ``1``, ``True`` and ``1.0`` are equal, and not the same."""
    if a != b:
        return False
    for x, y in zip(a, b):
        if x is not y and not _same_key(x, y):
            return False
    return True


cdef bint _same_key(object x, object y) except -1:
    if type(x) is not type(y):
        return False
    if PyTuple_CheckExact(x):
        return _same_keys(<tuple> x, <tuple> y)
    # Zeros have signs. What holds others in it (a frozenset, an instance) is known by its text.
    return type(x) in _PLAIN_KEYS or repr(x) == repr(y)


cdef bint _match(TreeDef structure, object tree, list leaves, bint ordered) except -1:
    cdef Kind kind = structure.kind
    cdef tuple children = structure.children
    cdef Py_ssize_t i, n
    if kind == LEAF:
        leaves.append(tree)
        return True
    n = len(children)
    if kind == TUPLE:
        if not PyTuple_CheckExact(tree) or len(<tuple> tree) != n:
            return False
        for i in range(n):
            if not _match(<TreeDef> children[i], (<tuple> tree)[i], leaves, ordered):
                return False
    elif kind == LIST:
        if not PyList_CheckExact(tree):
            return False
        for i in range(n):
            if len(<list> tree) != n or not _match(<TreeDef> children[i], (<list> tree)[i], leaves, ordered):
                return False
        return len(<list> tree) == n
    elif kind == DICT:
        if not PyDict_CheckExact(tree) or len(<dict> tree) != n:
            return False
        if ordered and not _same_keys(tuple(<dict> tree), structure.keys):
            return False
        for i in range(n):
            if structure.keys[i] not in <dict> tree:
                return False
            if not _match(<TreeDef> children[i], (<dict> tree)[structure.keys[i]], leaves, ordered):
                return False
    elif type(tree) is not structure.cls:
        return False
    else:
        return _match_instance(structure, tree, leaves, ordered)
    return True


cdef bint _equal(TreeDef a, TreeDef b) except -1:
    cdef Py_ssize_t i
    if a is b:
        return True
    if a._hash != b._hash or a.kind != b.kind or a.cls is not b.cls:
        return False
    if a.keys is not b.keys and not _same_keys(a.keys, b.keys):
        return False
    if len(a.children) != len(b.children):
        return False
    for i in range(len(a.children)):
        if not _equal(<TreeDef> a.children[i], <TreeDef> b.children[i]):
            return False
    return True
