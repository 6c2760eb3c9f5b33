// runtime/attribute.h: read attributes that an object may not have; a miss costs no exception.
//
// Threads: attached only. What is asked of an object runs code of its class, and what that raises is dropped; what is
// asked of a type does not.
#pragma once

#include <algorithm>  // std::copy_n

#include "runtime/lazy.h"
#include "runtime/ref.h"

namespace pyop {

// A name in a template's brackets, which is made into a string of Python's once.
template <size_t N>
struct Name {
    char text[N];
    consteval Name(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT(google-explicit-constructor)
};

// Borrowed; null with the error set.
template <Name name>
PyObject* interned() {
    static constinit Lazy made;
    return made.interned(name.text);
}

template <Name name>
Ref attribute_if_any(PyObject* o) {
    PyObject* found = nullptr;
    PyObject* const key = interned<name>();
#if PY_VERSION_HEX >= 0x030D0000
    if (key && PyObject_GetOptionalAttr(o, key, &found) < 0) PyErr_Clear();
#else
    if (key && _PyObject_LookupAttr(o, key, &found) < 0) PyErr_Clear();
#endif
    if (!key) PyErr_Clear();
    return Ref::steal(found);
}

// What objects of the type have by their class, as it stands there: None, which says that they have it not, counts as
// nothing. Borrowed.
template <Name name>
PyObject* of_type_if_any(PyTypeObject* type) {
    PyObject* const key = interned<name>();
    PyObject* found = key ? _PyType_Lookup(type, key) : nullptr;
    if (!found) PyErr_Clear();
    return found == Py_None ? nullptr : found;
}

template <Name... names>
bool type_has(PyObject* o) {
    return (... || (of_type_if_any<names>(Py_TYPE(o)) != nullptr));
}

template <Name name>
bool has_attribute(PyObject* o) {
    const Ref found = attribute_if_any<name>(o);
    return found && found.get() != Py_None;
}

}  // namespace pyop
