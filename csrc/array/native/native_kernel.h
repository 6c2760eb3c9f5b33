// array/native/native_kernel.h: hold the function of an op that is compiled code: a ufunc, and its loop
// (NativeKernel).
//
// Called from Python it calls its ufunc, which takes whatever NumPy takes. Eager calls of the op (op/op_native.cpp) and
// plans go to the loop at once, where the arrays lie as they should.
//
// Immutable. Attached threads, but for the loop, and native_loop_of(), whose result may be dropped on any thread.
#pragma once

#include <memory>

#include "array/loop/core_loop.h"
#include "array/native/native_code.h"

namespace pyop {

struct NativeKernel {
    // What is made at once and read ever after.
    struct Ready {
        PyArray_Descr* dtypes[NativeCode::kMaxOperands];  // NumPy's own, which live for ever
        // For code that does without the GIL and has few operands, and no core dimensions; or core dimensions.
        bool has_loop = false, has_core_loop = false;
        StridedLoop loop;
        CoreLoop core_loop;
        ResultRecycler recycler;  // the GIL guards it
    };

    PyObject_HEAD
    vectorcallfunc vectorcall;
    NativeCode* code;
    PyObject* ufunc;
    PyObject* source;  // what pickle makes it of again: (callable, arguments), or the reason why it cannot
    PyObject* parameters;  // tuple of str: the names of its arguments
    Ready* ready;
};

extern PyTypeObject* native_kernel_type;
int native_kernel_init(PyObject* module);

PYOP_INLINE bool is_native_kernel(PyObject* fn) { return Py_TYPE(fn) == native_kernel_type; }
PYOP_INLINE const NativeKernel& as_native_kernel(PyObject* fn) { return *reinterpret_cast<const NativeKernel*>(fn); }

// Its loop, for a plan: null if it has core dimensions or needs the GIL. Keeps the kernel.
std::shared_ptr<const StridedLoop> native_loop_of(PyObject* kernel);

}  // namespace pyop
