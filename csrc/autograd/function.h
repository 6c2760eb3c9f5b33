// autograd/function.h: call a Function, and hold the class behind it.
//
// A FunctionClass holds what is found out about a subclass of Function when it is created. It is what `Name.apply` is:
// calling it by vectorcall runs forward and, if some argument requires a gradient, records one node.
//
//   function_class.cpp    the type FunctionClass
//   function_apply.cpp    arguments -> node -> forward
//   function_outputs.cpp  what forward returned -> Tensors; what is saved
//   function_context.cpp  what ctx offers to forward and backward
//   function_backward.cpp gradients of the outputs -> gradients of the arguments
//   builtin.h              the same for the commonest NumPy operations, without Python
//
// Forward gets the arrays of its Tensor arguments, not the Tensors: an array that it saves, returns, or marks is
// recognised by identity. So within one call no two arguments may be the same array object; where they would be
// (two Tensors made of one array), the later one is handed over as a view.
#pragma once

#include <vector>

#include "autograd/grad_node.h"
#include "profile/events.h"
#include "runtime/ref.h"

namespace pyop {

struct FunctionClass {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* cls;
    PyObject* name;           // str, of the class
    PyObject* forward;        // callables, or null where the class has none
    PyObject* setup_context;
    PyObject* backward;
    PyObject* jvp;
    PyObject* defaults;       // tuple: of the last positional parameters of forward; split form only
    PyObject* bind;           // callable(args, kwargs) -> (args, kwargs), for calls with keywords
    PyObject* weakrefs;
    int32_t parameters;       // positional parameters of forward; split form only
    int32_t tangents;         // how many arguments of forward jvp has parameters for
    bool once;                // backward is @once_differentiable
    bool internal;            // pyop's own: a recorded NumPy call, whose complex gradients of real inputs are cut
    bool ambiguous;           // both backward and vjp are defined
    uint8_t builtin;          // which operation of builtin.h, if `is_builtin`
    bool is_builtin;
    SourceId profile_id;      // of its backward steps
};

extern PyTypeObject* function_class_type;
int function_class_init(PyObject* module);
PYOP_INLINE FunctionClass* as_function_class(PyObject* o) { return reinterpret_cast<FunctionClass*>(o); }

PyObject* function_apply(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// (args tuple, kwargs dict or None, tree or None): a call whose arguments are flat already.
PyObject* function_apply_flat(PyObject* self, PyObject* const* args, Py_ssize_t n);
// (tensors, result, attributes): records a call that was made already. What a recorded NumPy call is.
PyObject* function_record(PyObject* self, PyObject* const* args, Py_ssize_t n);

// (fn, args, rule): calls a `fn` that returns one array on the arrays of Tensors and on arrays, and records that as
// recording.py would. None, before `fn` is called, where it is not that plain: other arguments, nothing to record, a
// run forward. With a fourth, `fn` has been called, and has returned that.
PyObject* function_call_recorded(PyObject* self, PyObject* const* args, Py_ssize_t n);

// One call of a Function, while forward and setup_context run.
struct FunctionCall {
    FunctionClass* function;
    GradNode* node;
    PyObject* const* args;             // the flat arguments, borrowed
    size_t count;
    PyObject** arrays;                 // the same, as forward gets them: borrowed, or in `owned`
    std::vector<Ref> owned;
    SavedArrays* for_forward = nullptr;
    std::vector<Ref> dirty;            // arrays
    std::vector<Ref> non_differentiable;
    bool recorded = false;             // some argument requires a gradient, and recording is on
    bool any_tensor = false;
    bool any_array = false;
    bool any_tangent = false;
    bool is_fresh = false;  // results that own their memory are nobody else's
    bool in_jvp = false;

    ~FunctionCall() { saved_free(for_forward); }
    // Which argument `array` is, or -1.
    Py_ssize_t argument(PyObject* array) const {
        for (size_t i = 0; i < count; ++i) {
            if (arrays[i] == array) return static_cast<Py_ssize_t>(i);
        }
        return -1;
    }
    bool is_dirty(PyObject* array) const { return contains(dirty, array); }
    static bool contains(const std::vector<Ref>& list, PyObject* array) {
        for (const Ref& r : list) {
            if (r.get() == array) return true;
        }
        return false;
    }
};

// What forward returned, as the caller of apply gets it; the node learns its outputs and what it saves.
PyObject* function_finish(FunctionCall& call, Ref result);
// The tangents of the outputs, by the class's jvp; sets them on `outputs` (Tensors or anything else).
int function_forward_mode(FunctionCall& call, PyObject* outputs);

// Runs backward of a Function node on the gradients that arrived, one an output (null for none): one gradient an edge
// (null for none) as new references in `gradients`. `tensors`: gradients are Tensors, and recording is on.
// -1 with the error set. May take references out of `arrived`, unless `keep`.
int function_backward(GradNode* node, PyObject** arrived, PyObject** gradients, bool tensors, bool keep);

}  // namespace pyop
