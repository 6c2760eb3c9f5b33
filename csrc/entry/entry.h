// entry/entry.h: define Entry, the pyop_plan of include/pyop/entry.h: the access to a plan from C.
//
//     pyop_plan_call  →  native: a tape (native_call.h)                             no Python, no lock, nothing shared
//                     →  else: the GIL, arrays of the numbers, the Plan, its out=   copies
//
// An Entry is made when somebody asks for it, and belongs to the plan. It is immutable.
//
// When Python shuts down, threads that it does not know may be calling still: whatever plans have an Entry then are
// kept for ever (keep_plans_at_exit), so that no native call finds its memory gone.
#pragma once

#include <atomic>
#include <deque>
#include <string>

#include "entry/native_call.h"
#include "include/pyop/entry.h"
#include "plan/plan.h"

namespace pyop {

// An input or a result.
struct EntryArray {
    pyop_array told;
    std::string name, dtype_text;
    std::vector<int64_t> shape;
    std::vector<npy_intp> dims;
    PyArray_Descr* dtype;  // borrowed from the graph
};

struct Entry {
    pyop_plan head;  // what C sees of it
    PyObject* plan;  // borrowed: the owner
    std::deque<EntryArray> inputs, outputs;
    // Where each begins, in bytes, if they lie one behind the other (low_level.cpp); and all of the inputs.
    std::vector<size_t> packed_inputs, packed_outputs;
    size_t packed_bytes = 0;

    // The native way, if there is one.
    bool native = false;
    NativeCall tape;

    explicit Entry(PyObject* plan);
    ~Entry();
};

static_assert(offsetof(Entry, head) == 0);

// The entry of a plan, borrowed from it. Null with the error set, where C cannot know what to hand over.
const Entry* entry_of(PyObject* plan);

// As pyop_plan_call. Any thread.
int call_entry(const Entry& entry, const void* const* in, void* const* out);

// The same for who is not told of errors that are set, such as compiled code of numba: whatever is raised is kept for
// take_failure(), also where the GIL is held. On a thread that Python does not know nobody will ask for it: there it is
// reported as unraisable.
int call_entry_keeping(const pyop_plan* plan, const void* const* in, void* const* out);

// The same for who looks at no error at all, such as a C library that calls a function of numbers: it is raised when
// the thread returns to Python (raise_later), and until then nothing is computed. The status is PYOP_OK or PYOP_RAISED.
int call_entry_later(const pyop_plan* plan, const void* const* in, void* const* out);

// What all entries point to.
extern const pyop_table entry_table;

// The functions that SciPy calls (low_level.cpp). A capsule of one, named after its signature, whose context is the
// entry; it owns the plan.
PyObject* low_level_new(PyObject* plan, PyObject* name);

// The handler of XLA's (xla_call.cpp) as a capsule. Takes the number of this process, and what makes words of an
// exception; both as they were at the first call.
PyObject* xla_target(PyObject*, PyObject* arguments);

// function(argument), on a thread of XLA's, which takes subnormal numbers for zero: not meanwhile.
PyObject* call_with_subnormals(PyObject*, PyObject* const* arguments, Py_ssize_t n);

// For pyop.interop.onnxruntime (ort_call.cpp): what RegisterCustomOps is to add when it is called next on this thread;
// and an output of a running call as an array.
PyObject* ort_declare(PyObject*, PyObject* arguments);
PyObject* ort_output(PyObject*, PyObject* arguments);

// Adds `address`, `capsule` and what they need to Plan.
int entry_init(PyObject* module);

}  // namespace pyop
