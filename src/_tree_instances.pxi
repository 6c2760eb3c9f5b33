# cython: language_level=3
"""Instances of classes as containers: what they hold, and new ones that hold something else. Part of `_tree`.

Nothing of the class runs: attributes are read from slots and `__dict__`, past properties, descriptors and
`__getattr__`, and put there, past `__init__`, `__post_init__`, `__new__` and the guard of a frozen class.
"""

cdef bint _is_plain_class(object cls):
    """Return whether instances hold attributes alone: no class of C, as dict or ndarray, is among the bases."""
    for part in (<tuple> cls.__mro__)[:-1]:
        if not PyType_HasFeature(<PyTypeObject *> part, Py_TPFLAGS_HEAPTYPE):
            return False
    return True


cdef object _dict_of(object tree):
    """Return the attributes of an instance, past what its class makes of access; None if it has no `__dict__`."""
    try:
        return object.__getattribute__(tree, "__dict__")
    except AttributeError:
        return None


cdef dict _slots_of(type cls):
    """Return the member descriptors that `__slots__` of a class and its bases have made, by name; None for none."""
    cdef dict found = None
    for part in reversed(cls.__mro__):
        if "__slots__" in part.__dict__:
            for name, member in part.__dict__.items():
                if type(member) is _MEMBER:
                    found = {} if found is None else found
                    found[name] = member
    return found


class _Slotted:
    __slots__ = ("slot",)


cdef object _MEMBER = type(_Slotted.slot)


# Lists are filled by append, not by comprehensions: where memory runs out, Cython 3.2 releases the item of a
# comprehension twice.
cdef tuple _names_held(object tree, Kind kind, dict slots, dict held):
    """Return the names of the attributes that an instance has: fields first, as they were declared."""
    cdef list names = list(type(tree)._fields) if kind == NAMED else []
    for name in type(tree).__dataclass_fields__ if kind == DATACLASS else ():
        if (held is not None and name in held) or _has_slot(slots, tree, name):
            names.append(name)
    for name in slots or ():
        if name not in names and _has_slot(slots, tree, name):
            names.append(name)
    for name in held or ():
        if name not in names:
            names.append(name)
    return tuple(names)


cdef bint _has_slot(dict slots, object tree, object name):
    if slots is None or name not in slots:
        return False
    try:
        slots[name].__get__(tree)
    except AttributeError:
        return False
    return True


cdef object _attribute(object tree, dict slots, dict held, object name):
    """Return an attribute from where it is stored; KeyError or AttributeError if it is not there."""
    return held[name] if slots is None or name not in slots else slots[name].__get__(tree)


cdef bint _match_instance(TreeDef structure, object tree, list leaves, bint ordered) except -1:
    cdef tuple keys = structure.keys
    cdef dict slots = structure.slots
    cdef object held = _dict_of(tree)
    cdef Py_ssize_t i, first = 0, in_dict = 0, n = len(keys)
    if structure.kind == NAMED:
        first = len(<tuple> tree)
        for i in range(min(first, n)):
            if not _match(<TreeDef> structure.children[i], (<tuple> tree)[i], leaves, ordered):
                return False
    for i in range(first, n):
        name = keys[i]
        if slots is not None and name in slots:
            if not _has_slot(slots, tree, name):
                return False
        elif held is None or name not in <dict> held:
            return False
        else:
            in_dict += 1
        if not _match(<TreeDef> structure.children[i], _attribute(tree, slots, held, name), leaves, ordered):
            return False
    if held is not None and len(<dict> held) != in_dict:
        return False
    return slots is None or len(_names_held(tree, structure.kind, slots, held)) == n


cdef object _instance(TreeDef structure, list parts):
    cdef Py_ssize_t i, first = 0
    cdef dict slots = structure.slots
    cdef object held = None
    if structure.kind == NAMED:
        first = len(structure.cls._fields)
        made = tuple.__new__(structure.cls, parts[:first])
    else:
        made = object.__new__(structure.cls)
    for i in range(first, len(parts)):
        name = structure.keys[i]
        if slots is not None and name in slots:
            slots[name].__set__(made, parts[i])
            continue
        if held is None:
            held = _dict_of(made)
        held[name] = parts[i]
    return made


cdef Py_ssize_t _add_beside(TreeDef structure, Py_ssize_t position, bint beside, set found) except -1:
    """Add the places of the leaves beside fields, from a position on; return the one behind the structure."""
    cdef TreeDef child
    cdef Py_ssize_t i
    if structure.kind == LEAF:
        if beside:
            found.add(position)
        return position + 1
    fields = ()
    if structure.kind >= NAMED:
        fields = structure.cls._fields if structure.kind == NAMED else structure.cls.__dataclass_fields__
    for i in range(len(structure.children)):
        child = structure.children[i]
        own = beside or (structure.kind >= NAMED and structure.keys[i] not in fields)
        position = _add_beside(child, position, own, found)
    return position
