// autograd/tensor_writes.cpp: change recorded Tensors in place, and guard numbers that would leave the record.
//
// `y += b` runs NumPy's operator in place on a copy of y's numbers, so that dtype, casting, bits and errors are
// NumPy's; the result is recorded as that of `y + b`, and y and the result change places: the handle y, which names and
// containers hold, stands for the new value, and the object of the result for the old one, which nodes may have saved.
// Where the memory of y is seen through anything else (a view, detach(), an array, the caller's argument) that would
// leave the other one behind, and is refused.
#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/function_parts.h"
#include "autograd/tensor_parts.h"
#include "autograd/turn.h"
#include "graph/value.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// Whether nothing but `t`, and what nodes saved, can see its memory.
bool is_alone(TensorObject* t) { return !(t->counter && t->counter->tensors > 1) && is_unshared(t); }

// `t` stands for what `made` stands for, and the other way round.
int move(TensorObject* t, TensorObject* made) {
    std::swap(t->data, made->data);
    std::swap(t->grad_fn, made->grad_fn);
    std::swap(t->output, made->output);
    std::swap(t->info, made->info);
    std::swap(t->counter, made->counter);
    std::swap(t->version, made->version);
    std::swap(t->is_view, made->is_view);
    std::swap(t->view_version, made->view_version);
    std::swap(t->requires_grad, made->requires_grad);
    made->is_scalar = false;
    if (t->extra || made->extra) {
        if (!tensor_extra(t) || !tensor_extra(made)) return -1;
        std::swap(t->extra->tangent, made->extra->tangent);
        std::swap(t->extra->run, made->extra->run);
    }
    tensor_track(t);
    tensor_track(made);
    saved_move(t, made);
    return tensor_retain_again(t, made->grad_fn);
}

// The result of an operator in place, given its numbers, as a Tensor with history and tangent. New reference.
PyObject* record(const char* ufunc, Builtin builtin, PyObject* a, PyObject* b, Ref numbers) {
    if (builtin != Builtin::None) {
        PyObject* made = nullptr;
        const int done = guarded([&] { return builtin_record(builtin, a, b, numbers, made); }, -1);
        if (done) return made;
    }
    Ref name = Ref::steal(PyUnicode_FromString(ufunc));
    if (!name) return nullptr;
    PyObject* args[] = {name.get(), a, b, numbers.get()};
    return outside_new(up_calls.record_in_place, args, 4);
}

}  // namespace

PyObject* refuse_numbers(const char* what) {
    return refuse(
        PyExc_TypeError,
        "%s takes the numbers of a Tensor out of what is recorded: its history would be lost, and the "
        "gradient through them zero without a word. Write it with NumPy's functions (np.exp(x) for math.exp(x), "
        "np.stack for np.array of Tensors, np.where for a choice, np.floor for int), or say that it is "
        "constant there with pyop.stop_gradient(x), x.detach() or, as an array, x.numpy()",
        what);
}

PyObject* refuse_write(const char* how, TensorObject* t, PyObject* other) {
    Ref name = Ref::steal(PyUnicode_FromString(how));
    if (!name) return nullptr;
    PyObject* args[] = {name.get(), as_object(t), other ? other : Py_None};
    Ref none = Ref::steal(outside_new(up_calls.refuse_write, args, 3));
    return nullptr;
}

bool is_written_through(const TensorObject* t) {
    const VersionCounter* counter = t->counter;
    if (PYOP_LIKELY(!counter)) return false;
    return counter->arguments || (counter->has_history && counter->tensors > 1 && is_recording());
}

PyObject* tensor_in_place(const InPlace& how, PyObject* a, PyObject* b) {
    TensorObject* t = as_tensor(a);
    if (is_value(b) || is_batched(b)) return refuse_write(how.text, t, b);
    const bool watched = is_watched(t) || is_watched(b);
    PyObject* operand = is_tensor(b) ? as_object(as_tensor(b)->data) : b;
    if (!watched) {
        if (PYOP_UNLIKELY(is_written_through(t))) return refuse_write(how.text, t, b);
        Ref done = Ref::steal(how.apply(as_object(t->data), operand));
        if (!done) return nullptr;
        tensor_bump(t);
        return Py_NewRef(a);
    }
    if (is_leaf(t) && t->requires_grad && is_recording() && !t->is_argument) {
        return refuse(
            PyExc_RuntimeError,
            "a leaf that requires a gradient would be changed in place: to update it, do this under no_grad(); "
            "to compute with it, write a = a + b");
    }
    if (PyArray_FailUnlessWriteable(t->data, "output array") < 0 || check_view(t) < 0) return nullptr;
    if (t->is_argument || t->sink || !is_alone(t)) return refuse_write(how.text, t, b);
    Ref numbers = Ref::steal(PyArray_NewCopy(t->data, NPY_KEEPORDER));
    if (!numbers) return nullptr;
    // NumPy's loops may give other bits where an operand is the result.
    if (operand == as_object(t->data)) operand = numbers.get();
    Ref done = Ref::steal(how.apply(numbers.get(), operand));
    if (!done) {
        // NumPy has written by then: a function that catches this goes on with other numbers than these.
        if (PyErr_ExceptionMatches(PyExc_ArithmeticError) || PyErr_ExceptionMatches(PyExc_Warning))
            note_pending_refusal();
        return nullptr;
    }
    Ref made = Ref::steal(record(how.ufunc, how.builtin, a, b, std::move(numbers)));
    if (!made || move(t, as_tensor(made.get())) < 0) return nullptr;
    return Py_NewRef(a);
}

}  // namespace pyop
