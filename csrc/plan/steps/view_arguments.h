// plan/steps/view_arguments.h: read static arguments of view functions as numbers.
//
// Every reader returns false for what it does not understand, without an error: the function will be called, and
// knows what to say.
#pragma once

#include <vector>

#include "array/call/tree_call.h"
#include "array/view/view_recipe.h"

namespace pyop {

bool read_int(PyObject* o, npy_intp& value);
// A number, or one of the symbolic sizes of a call (`sizes` may be null).
bool read_size(PyObject* o, const TreeCallObject::Layout* sizes, ViewSize& size);
// One size, or a tuple or list of them.
bool read_shape(PyObject* o, const TreeCallObject::Layout* sizes, std::vector<ViewSize>& shape);
// An axis of an array of `ndim` dimensions, counted from the front.
bool read_axis(PyObject* o, int ndim, int& axis);
// One axis, or a tuple or list of different ones.
bool read_axes(PyObject* o, int ndim, std::vector<int>& axes);

}  // namespace pyop
