// plan/compiled_function.h: define CompiledFunction, what pyop.compile makes of a function: a callable that finds the
// plan for its arguments and runs it.
//
//     arguments as in the last call       one comparison an array, then the plan
//     as in some call remembered          the same, found by hash (plan/guard.h)
//     another instance or closure         a plan of the code, whose inputs are what that one holds
//     (plan/state_inputs.h) never seen                          `miss`, of python/pyop/compiling/tracer.py, traces and
//     compiles symbolic, or a graph is being built the function itself: its operations go into that graph written
//     arguments that overlap     the function itself (plan/write_back.h)
//
// Threads: attached only. Where there is no GIL the object's lock (runtime/without_gil.h) guards the table of guards
// and what is in it, and `states`; it is not held while a plan or the function runs, nor during a trace.
#pragma once

#include "plan/guard.h"
#include "profile/events.h"

namespace pyop {

struct CompiledFunctionObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* fn;
    PyObject* miss;  // miss(self, arguments, n_positional, names, out)
    PyObject* states;  // list of StateInputs, or null (plan/state_inputs.h)
    GuardTable* guards;
    uint64_t statics;  // the first 64 positional parameters: which are static
    Relaxed<uint64_t> hits, misses;
    bool takes_out;  // `out=` goes to the plan, being no parameter of the function
    bool declared;  // specs were given
    bool derives;  // it is a derivative, which does not always run as it is
    int traces;  // going on, and on which thread (plan/trace_call.cpp)
    unsigned long tracer;
    SourceId profile_id;
    PyObject* dict;
    PyObject* weakrefs;
};

inline CompiledFunctionObject& compiled_function_of(PyObject* self) {
    return *reinterpret_cast<CompiledFunctionObject*>(self);
}

extern PyTypeObject* compiled_function_type;

// A call; and the plan that one with these arguments runs (compiled_function.cpp).
PyObject* compiled_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names);
// The same behind a quick way that it was not for, of which it was counted.
PyObject* compiled_vectorcall_otherwise(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names);
PyObject* compiled_plan_for(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);
// Those of all paths that are known so far, without a call; none where the function itself runs.
PyObject* compiled_plans_for(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);

int compiled_function_init(PyObject* module);

}  // namespace pyop
