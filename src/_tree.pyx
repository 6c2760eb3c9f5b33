# cython: language_level=3, wraparound=False
"""Flattening and rebuilding of nested containers: tuple, list, dict, named tuple, dataclass instance.

Only exactly these are containers: a subclass of dict, or a tuple type that is not a named tuple, is a leaf, as
is None. A TreeDef is the structure without the leaves.

An instance is all that it holds: its fields and whatever else stands in its slots and its `__dict__`.
"""

from cpython.list cimport PyList_CheckExact
from cpython.tuple cimport PyTuple_CheckExact
from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    unsigned long Py_TPFLAGS_HEAPTYPE
    bint PyType_HasFeature(PyTypeObject *cls, unsigned long feature)
    # hasattr makes and drops an AttributeError for each leaf; this looks in the type cache and returns NULL.
    PyObject *_PyType_Lookup(PyTypeObject *cls, object name)
    PyTypeObject *Py_TYPE(object tree)

# Deep enough for any data, shallow enough for the C stack of a thread; a list that holds itself ends here.
cdef enum:
    MAX_DEPTH = 500

cdef enum Kind:
    LEAF
    TUPLE
    LIST
    DICT
    NAMED      # a named tuple: rebuilt as its own type
    DATACLASS  # an instance of a dataclass: rebuilt as its own type


cdef bint _has(object tree, str name):
    return _PyType_Lookup(Py_TYPE(tree), name) != NULL


cdef Kind _kind_of(object tree) except? LEAF:
    if PyTuple_CheckExact(tree):
        return TUPLE
    if PyList_CheckExact(tree):
        return LIST
    if PyDict_CheckExact(tree):
        return DICT
    if isinstance(tree, tuple):
        return NAMED if _has(tree, "_make") and PyTuple_CheckExact(getattr(type(tree), "_fields", None)) else LEAF
    return DATACLASS if _has(tree, "__dataclass_fields__") and _is_plain_class(type(tree)) else LEAF


cdef class TreeDef:
    """The structure of a tree: which containers, with which keys, and where the leaves stand.

    Made by `flatten`; immutable, hashable and picklable.
    """

    cdef Kind kind
    cdef type cls         # of a named tuple or dataclass
    cdef tuple keys       # of a dict; the attributes of a named tuple or dataclass, fields first; otherwise None
    cdef dict slots       # the member descriptors of the attributes that have one; None if none has
    cdef tuple children   # TreeDefs
    cdef readonly Py_ssize_t num_leaves
    cdef Py_hash_t _hash

    def __cinit__(self):
        # Whatever way it comes into being, it is a leaf at least.
        self.num_leaves = 1
        self.children = ()

    def __init__(self):
        raise TypeError("a TreeDef is made by flatten(tree)")

    @property
    def is_leaf(self):
        """Whether the tree is one leaf and no container."""
        return self.kind == LEAF

    def unflatten(self, leaves):
        """The tree of this structure that has these leaves."""
        cdef list items = leaves if PyList_CheckExact(leaves) else list(leaves)
        cdef Py_ssize_t position = 0
        if len(items) != self.num_leaves:
            raise ValueError(f"structure {self!r} has {self.num_leaves} leaves, got {len(items)}")
        return _unflatten(self, items, &position)

    def flatten_up_to(self, tree):
        """What stands in a tree where this structure has its leaves.

        The tree must have the same containers and keys as the structure at every level of it; a leaf may be anything,
        also a container. The keys of a dict may come in any order.

        Raises
        ------
        TypeError
            Another container type than the structure has.
        ValueError
            Another length, or other keys.

        Examples
        --------
        >>> structure = flatten({"a": 1, "b": 2})[1]
        >>> structure.flatten_up_to({"b": [3, 4], "a": None})
        [None, [3, 4]]
        """
        cdef list leaves = []
        if not _match(self, tree, leaves, False):
            _explain(self, tree, "")
            raise RuntimeError("the tree changed while it was read")
        return leaves

    def match(self, tree, ordered=True):
        """The leaves of a tree of this structure, keys of dicts in this order if `ordered`; None for another one."""
        cdef list leaves = []
        return leaves if _match(self, tree, leaves, ordered) else None

    def beside_fields(self):
        """The places of the leaves that stand in attributes which are no fields of their class."""
        cdef set found = set()
        _add_beside(self, 0, False, found)
        return found

    def leaf_paths(self):
        """How each leaf is reached from the root, as Python writes it: ``['img'][0].left``; empty for the root."""
        cdef list paths = []
        _paths(self, "", paths)
        return paths

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return NotImplemented
        return _equal(self, <TreeDef> other)

    def __hash__(self):
        return self._hash

    def __repr__(self):
        return f"TreeDef({_text(self)})"

    def __reduce__(self):
        # Flat, because pickle would recurse.
        cdef list steps = []
        _encode(self, steps)
        return _decode, (steps,)


include "_tree_instances.pxi"


cdef TreeDef _new(Kind kind, type cls, tuple keys, dict slots, tuple children):
    cdef TreeDef self = TreeDef.__new__(TreeDef)
    cdef TreeDef child
    self.kind = kind
    self.cls = cls
    self.keys = keys
    self.slots = slots
    self.children = children
    self.num_leaves = 1 if kind == LEAF else 0
    for child in children:
        self.num_leaves += child.num_leaves
    self._hash = hash((<int> kind, cls, keys, children))
    return self


cdef TreeDef _LEAF = _new(LEAF, None, None, None, ())


cdef int _check_depth(int depth) except -1:
    if depth > MAX_DEPTH:
        raise ValueError(f"the tree is nested deeper than {<int> MAX_DEPTH} levels; does a container hold itself?")
    return 0


cdef tuple _keys_of(object tree, Kind kind, dict slots):
    if kind == DICT:
        return tuple(<dict> tree)
    if kind >= NAMED:
        return _names_held(tree, kind, slots, _dict_of(tree))
    return None


cdef tuple _children_of(object tree, Kind kind, tuple keys, dict slots):
    cdef list found
    cdef Py_ssize_t i
    if kind == TUPLE:
        return <tuple> tree
    if kind == DICT:
        return tuple((<dict> tree).values())
    if kind == LIST:
        return tuple(<list> tree)
    found = list(tuple.__iter__(tree)) if kind == NAMED else []
    held = _dict_of(tree)
    for i in range(len(found), len(keys)):
        found.append(_attribute(tree, slots, held, keys[i]))
    return tuple(found)


# --- leaves out


def flatten(tree, is_leaf=None):
    """The leaves of a tree in order, and its structure.

    Parameters
    ----------
    tree : object
        Nested tuples, lists, dicts, named tuples and dataclass instances; anything else is a leaf.
    is_leaf : callable, optional
        ``is_leaf(x)`` true makes `x` a leaf even if it is a container.

    Returns
    -------
    leaves : list
    structure : TreeDef

    Examples
    --------
    >>> leaves, structure = flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves, structure
    ([1, 2, 3], TreeDef({'a': *, 'b': [*, (*,)]}))
    >>> structure.unflatten("xyz")
    {'a': 'x', 'b': ['y', ('z',)]}
    """
    cdef list leaves = []
    structure = _flatten(tree, leaves, is_leaf, 0)
    return leaves, structure


cdef TreeDef _flatten(object tree, list leaves, object is_leaf, int depth):
    cdef Kind kind = _kind_of(tree)
    cdef tuple keys
    cdef dict slots
    if kind == LEAF or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    _check_depth(depth)
    slots = _slots_of(type(tree)) if kind >= NAMED else None
    keys = _keys_of(tree, kind, slots)
    cdef list children = []
    for child in _children_of(tree, kind, keys, slots):
        children.append(_flatten(child, leaves, is_leaf, depth + 1))
    return _new(kind, type(tree) if kind >= NAMED else None, keys, slots, tuple(children))


cdef tuple _parts_of(object tree, Kind kind):
    cdef dict slots = _slots_of(type(tree)) if kind >= NAMED else None
    return _children_of(tree, kind, _keys_of(tree, kind, slots), slots)


def contains(tree, kind):
    """Whether a leaf of the tree is an instance of a type, or of one of a tuple of types."""
    return _contains(tree, kind, 0)


cdef bint _contains(object tree, object kind, int depth) except -1:
    cdef Kind container = _kind_of(tree)
    if container == LEAF:
        return isinstance(tree, kind)
    _check_depth(depth)
    for child in _parts_of(tree, container):
        if _contains(child, kind, depth + 1):
            return True
    return False


def leaf_types(tree):
    """The types of the leaves of a tree, as a set.

    Examples
    --------
    >>> leaf_types({"a": 1, "b": [2, (3,)]})
    {<class 'int'>}
    """
    cdef set found = set()
    _add_types(tree, found, 0)
    return found


cdef int _add_types(object tree, set found, int depth) except -1:
    cdef Kind container = _kind_of(tree)
    if container == LEAF:
        found.add(type(tree))
        return 0
    _check_depth(depth)
    for child in _parts_of(tree, container):
        _add_types(child, found, depth + 1)
    return 0


include "_tree_match.pxi"


cdef _explain(TreeDef structure, object tree, str path):
    """Raise for the first place where the tree is not as the structure says; return if there is none."""
    cdef Kind kind = structure.kind
    cdef TreeDef child
    cdef Py_ssize_t i
    if kind == LEAF:
        return
    got = _kind_of(tree)
    where = f"structure mismatch{' at ' + path if path else ''}: expected {_describe(structure)}, got "
    if got != kind or (kind >= NAMED and type(tree) is not structure.cls):
        raise TypeError(where + _describe(_outline(tree)))
    if kind == DICT and set(tree) != set(structure.keys):
        raise ValueError(where + _describe(_outline(tree)))
    slots = _slots_of(type(tree)) if kind >= NAMED else None
    keys = _keys_of(tree, kind, slots)
    if kind < DICT and len(tree) != len(structure.children):
        raise ValueError(where + _describe(_outline(tree)))
    if kind >= NAMED and set(keys) != set(structure.keys):
        raise ValueError(f"{where}one with the attributes {', '.join(keys)}: {', '.join(structure.keys)} are expected")
    parts = _children_of(tree, kind, keys, slots)
    for i in range(len(structure.children)):
        child = structure.children[i]
        part = parts[i] if kind < DICT else parts[keys.index(structure.keys[i])]
        _explain(child, part, path + _step(structure, i))


cdef object _outline(object tree):
    """The outermost container of a tree as a structure; the type of a leaf."""
    cdef Kind kind = _kind_of(tree)
    if kind == LEAF:
        return type(tree)
    slots = _slots_of(type(tree)) if kind >= NAMED else None
    keys = _keys_of(tree, kind, slots)
    children = (_LEAF,) * len(_children_of(tree, kind, keys, slots))
    return _new(kind, type(tree) if kind >= NAMED else None, keys, slots, children)


cdef str _describe(object outline):
    cdef TreeDef structure
    if not isinstance(outline, TreeDef):
        return f"one value of type {outline.__name__}"
    structure = <TreeDef> outline
    n = len(structure.children)
    if structure.kind == DICT:
        keys = ", ".join(map(repr, structure.keys[:20]))
        return f"a dict with the keys {keys}{', ...' if n > 20 else ''}" if n else "an empty dict"
    if structure.kind >= NAMED:
        return f"a {structure.cls.__name__} of {n}"
    name = "tuple" if structure.kind == TUPLE else "list"
    return f"a {name} of {n}" if n else f"an empty {name}"


# --- leaves in


cdef object _unflatten(TreeDef structure, list leaves, Py_ssize_t *position):
    cdef Kind kind = structure.kind
    cdef list parts = []
    if kind == LEAF:
        position[0] += 1
        return leaves[position[0] - 1]
    for child in structure.children:
        parts.append(_unflatten(<TreeDef> child, leaves, position))
    if kind == LIST:
        return parts
    if kind == TUPLE:
        return tuple(parts)
    if kind == DICT:
        return dict(zip(structure.keys, parts))
    return _instance(structure, parts)


def map_leaves(f, tree):
    """The tree with every leaf replaced by ``f(leaf)``.

    Examples
    --------
    >>> map_leaves(str, {"a": 1, "b": (2, None)})
    {'a': '1', 'b': ('2', 'None')}
    """
    cdef list leaves = []
    cdef TreeDef structure = _flatten(tree, leaves, None, 0)
    return structure.unflatten(list(map(f, leaves)))


# --- what a structure says of itself


cdef str _step(TreeDef structure, Py_ssize_t i):
    if structure.kind >= NAMED:
        return f".{structure.keys[i]}"
    return f"[{structure.keys[i]!r}]" if structure.kind == DICT else f"[{i}]"


cdef _paths(TreeDef structure, str prefix, list paths):
    cdef Py_ssize_t i
    if structure.kind == LEAF:
        paths.append(prefix)
        return
    for i in range(len(structure.children)):
        _paths(<TreeDef> structure.children[i], prefix + _step(structure, i), paths)


cdef str _text(TreeDef structure):
    cdef list parts = [], fields = []
    for child in structure.children:
        parts.append(_text(<TreeDef> child))
    if structure.kind == LEAF:
        return "*"
    if structure.kind == LIST:
        return f"[{', '.join(parts)}]"
    if structure.kind == TUPLE:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if structure.kind == DICT:
        for key, part in zip(structure.keys, parts):
            fields.append(f"{key!r}: {part}")
        return f"{{{', '.join(fields)}}}"
    for name, part in zip(structure.keys, parts):
        fields.append(f"{name}={part}")
    return f"{structure.cls.__name__}({', '.join(fields)})"


cdef _encode(TreeDef structure, list steps):
    """Children first: (kind, class, keys, None, number of children) of each part."""
    cdef TreeDef child
    for child in structure.children:
        _encode(child, steps)
    steps.append((<int> structure.kind, structure.cls, structure.keys, None, len(structure.children)))


def _decode(steps):
    """The TreeDef that was pickled as these steps."""
    cdef list done = []
    for kind, cls, keys, _, n in steps:
        if not (LEAF <= kind <= DATACLASS and 0 <= n <= len(done)) or (kind >= DICT and len(keys) != n):
            raise ValueError("these are not the steps of a TreeDef")
        if kind == LEAF:
            done.append(_LEAF)
            continue
        children = tuple(done[len(done) - n:])
        del done[len(done) - n:]
        slots = _slots_of(cls) if kind >= NAMED else None
        done.append(_new(<Kind> <int> kind, cls, keys, slots, children))
    if len(done) != 1:
        raise ValueError("these are not the steps of a TreeDef")
    return done[0]
