// plan/group/ufunc_loops.h: find NumPy's loops and pyop's kernels by ufunc and operands, each asked for once.
#pragma once

#include <array>
#include <string_view>

#include "plan/group/elementwise.h"

namespace pyop {

// A ufunc, and for each input a dtype of NumPy's own, or the type int, float or complex for a Python number.
struct LoopKey {
    PyObject* ufunc;
    std::array<PyObject*, StridedLoop::kMaxOperands> kinds;
    bool operator==(const LoopKey&) const = default;
};
struct KnownLoop {
    Ref ufunc;  // keeps the key valid; the kinds are NumPy's own dtypes and builtin types
    ElementwiseCall call;  // but for the arguments; without a loop: not available
    bool own = false;  // it is NumPy's, and its operands are of one type that kernels may know
};

// Of `n` inputs; lives as long as the process. Null with an error set. Attached threads.
const KnownLoop* find_loop(const LoopKey& key, size_t n);

bool is_builtin_dtype(PyArray_Descr* dtype);
// A Python float, int or complex.
bool is_python_number(PyObject* o);
// The dtype of a scalar of NumPy, of one of its own dtypes; borrowed, for they live for ever. Else null.
PyArray_Descr* scalar_dtype(PyObject* o);

// Whether NumPy's operator between scalars gives the bits and the floating-point flags of the ufunc's loop, so that
// the words of its warnings are all that is different. tests/plan/test_scalar_operators.py holds every other one apart.
bool same_for_scalars(std::string_view ufunc, PyArray_Descr* computed_in);

}  // namespace pyop
