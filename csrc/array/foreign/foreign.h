// array/foreign/foreign.h: turn an object that is no ndarray into one. All that takes arrays goes by this table: ops,
// plans, compiled functions, graphs that run and their constants, results.
//
//   it is, or its type has                 becomes                                          copied
//   ndarray                                itself                                           no
//   a subclass of ndarray                  its ndarray; masked elements: an error           no
//   __dlpack_c_exchange_api__              over its memory; a gradient, a sign or           no
//                                          conjugate not carried out yet: an error
//   __arrow_c_array__, of numbers          over its memory, read-only; nulls: an error      truths and days only
//   __dlpack__                             over its memory                                  no
//   buffer, __array_struct__,              what NumPy makes of it; nulls that would         if its library does
//   __array_interface__, __array__         become NaN: an error
//   numbers, text, nested lists of these   what NumPy makes of them                         yes
//   __dlpack_device__ not of the CPU       an error that says how to get it from there
//
// The first line that applies counts, but for the last, which comes before all from __dlpack__ on. pyop's own Tensors
// and Values go the way of __array__, which refuses where a gradient would be lost.
#pragma once

#include "array/numpy.h"

namespace pyop {

// An ndarray of `value` by that table. Where nothing else applies, NumPy's array of the object itself, of dtype object.
// New reference; null with whatever error was raised.
//
// `read_only`: no writable array over memory of another library. An argument is nobody's to write, and what a function
// returns of it is not either.
PyObject* foreign_array_new(PyObject* value, bool read_only = false);

}  // namespace pyop
