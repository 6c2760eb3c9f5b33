// array/protocol/stand_in.h: define types whose objects stand for NumPy's arrays and for NumPy's scalars.
//
// One C type has the methods of both, and a function may ask which ones there are. collections.abc and typing look for
// names in the dict of type(x), where they would find all of them. So these names are not there: len(x), iter(x),
// k in x, hash(x) and operator.index(x) go by the slots of the type, and `x.__len__` by its tp_getattro, which gives
// what the class of NumPy has that the object stands for.
#pragma once

#include <array>

#include "runtime/python.h"
#include "runtime/ref.h"

namespace pyop {

class StandIn {
  public:
    // Takes the names of those methods out of the type's dict. -1: error set.
    int take_names(PyTypeObject* type);

    // The attribute `name` of `self` for tp_getattro; null with the error set. `as` gives the class of NumPy.
    PyObject* attribute(PyObject* self, PyObject* name, PyObject* (*as)(PyObject*, void*)) const;

    // Whether arrays have a method of this name, and scalars (of numbers) have none.
    static bool only_arrays_have(PyObject* name);

  private:
    static constexpr std::array<const char*, 5> kNames = {"__len__", "__iter__", "__contains__", "__hash__",
                                                          "__index__"};
    std::array<PyObject*, kNames.size()> methods_{};  // descriptors, for the life of the process
};

}  // namespace pyop
