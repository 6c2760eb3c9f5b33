#include "runtime/refusal.h"

#include "runtime/errors.h"
#include "runtime/forced_exit.h"

namespace pyop {

namespace {

// The list of what was noted in the innermost watch, owned. Greenlets may leave watches in another order than they
// entered them, so lists are owned by count, and nothing points into a stack.
constinit thread_local PyObject* innermost = nullptr;

// What the function made of its refusal goes; the refusal itself is raised, and noted by the watch around this one.
PYOP_COLD void raise_caught(Ref refusal) {
    Ref note = Ref::steal(PyUnicode_FromString(
        "the function caught this error and went on, another way than it would have gone with arrays"));
    restore_pending(std::move(refusal));
    note_pending(note.get());
    note_pending_refusal();
}

}  // namespace

void note_refusal(PyObject* exception) {
    if (!innermost || PyList_GET_SIZE(innermost) > 0) return;
    if (PyList_Append(innermost, exception) < 0) PyErr_Clear();  // no memory: the error itself still stands
}

void note_pending_refusal() {
    if (!innermost) return;
    Ref exception = take_pending();
    note_refusal(exception.get());
    restore_pending(std::move(exception));
}

PyObject* refuse(PyObject* type, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(type, format, arguments);
    va_end(arguments);
    note_pending_refusal();
    return nullptr;
}

PyObject* call_watched(PyObject* fn, PyObject* args, PyObject* kwargs) {
    Ref noted = Ref::steal(PyList_New(0));
    if (!noted) return nullptr;
    Ref outer = Ref::steal(std::exchange(innermost, noted.new_ref()));
    Ref result = Ref::steal(survive([&] { return PyObject_Call(fn, args, kwargs); }));
    Ref left = Ref::steal(std::exchange(innermost, outer.release()));
    if (!result || PyList_GET_SIZE(noted.get()) == 0) return result.release();
    raise_caught(Ref::borrow(PyList_GET_ITEM(noted.get(), 0)));
    return nullptr;
}

}  // namespace pyop
