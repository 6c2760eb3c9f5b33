// array/native/native_code.h: hold a compiled function from outside in the form in which pyop calls it (NativeCode).
//
// Whatever it was (a kernel of include/pyop/kernel.h, a loop as NumPy's ufuncs have it, a C function of numbers) is
// called with pointers, sizes and strides as NumPy gives them to a ufunc's loop, and answers with a status.
//
// Lifetime: an immutable Python object that owns `owner`, whatever keeps the machine code in memory (a module, a
// library, a callback, a capsule). It is the `obj` of the ufunc that is made of it, so that the ufunc owns it.
// Threads: run() on any; with the GIL held where `needs_gil`.
#pragma once

#include <string>
#include <vector>

#include "array/numpy.h"

namespace pyop {

struct NativeCode;

// Calls a C function of numbers for n elements.
using ScalarLoop = void (*)(const NativeCode& code, char* const* data, npy_intp n, const npy_intp* strides);

struct NativeCode {
    static constexpr int kMaxOperands = 10;
    enum class Kind : int8_t { WithStatus, UfuncLoop, Scalar };  // enum pyop_kernel_kind

    PyObject_HEAD
    void (*function)();
    void* data;
    const char* (*message)(int status, void* data);
    ScalarLoop scalar;
    Kind kind;
    bool needs_gil;
    bool may_raise;  // it may set a Python error
    int n_in, n_operands;
    std::vector<int>* types;  // by operand: NumPy's type number
    std::string* name;
    std::string* cores;  // "(m,n),(n)->(m)"; "" where it works element by element
    PyObject* owner;

    bool elementwise() const { return cores->empty(); }
    // Whether a call may fail, by its status or by a Python error.
    bool may_fail() const { return may_raise || kind == Kind::WithStatus; }

    // 0, or the status of the failure. `sizes` and `strides` as in include/pyop/kernel.h.
    int run(char* const* operands, const npy_intp* sizes, const npy_intp* strides) const;
};

extern PyTypeObject* native_code_type;
int native_code_init(PyObject* module);

// Sets the error of a call that failed with that status, unless it has set one. Attached threads.
PYOP_COLD void native_call_failed(const NativeCode& code, int status);

// The loop for a C function of numbers of these types (inputs first, one output), and behind its inputs as many
// integers or pointers that are zero; null where pyop knows none.
ScalarLoop find_scalar_loop(const std::vector<int>& types, size_t zeros);

}  // namespace pyop
