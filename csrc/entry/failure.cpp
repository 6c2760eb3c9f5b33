// entry/failure.cpp: keep messages and exceptions by thread.
#include "entry/failure.h"

#include <cstring>

#include "include/pyop/entry.h"
#include "runtime/errors.h"
#include "runtime/lazy.h"
#include "runtime/shared_ref.h"

namespace pyop {

constinit thread_local bool waits_to_raise = false;

namespace {

constexpr size_t kLongest = 2000;

thread_local char last_message[kLongest] = "";
thread_local SharedRef last_exception;
thread_local SharedRef later;

void keep_message(const char* text) {
    std::strncpy(last_message, text, kLongest - 1);
    last_message[kLongest - 1] = 0;
}

// "ValueError: its text", the way a traceback ends.
void keep_message_of(PyObject* exception) {
    std::string text = type_name(exception);
    Ref words = Ref::steal(PyObject_Str(exception));
    if (!words) PyErr_Clear();
    if (words && PyUnicode_GET_LENGTH(words.get()) > 0) text += ": " + printable(words.get());
    keep_message(text.c_str());
}

// A class that makes, when Python raises it, the exception that was kept. Borrowed; null with the error set.
PyObject* class_of_later() {
    static constinit Lazy made;
    static PyMethodDef take = {"__new__", take_later, METH_VARARGS, nullptr};
    return made.get([]() -> PyObject* {
        Ref function = Ref::steal(PyCFunction_New(&take, nullptr));
        Ref method = function ? Ref::steal(PyStaticMethod_New(function.get())) : Ref();
        if (!method) return nullptr;
        return PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O){sOss}", "RaisedLater",
                                     PyExc_BaseException, "__new__", method.get(), "__module__", "pyop");
    });
}

// Where it was raised, as a note: an exception that is raised anew by the interpreter loses its traceback.
void note_traceback(PyObject* exception) {
    Ref traceback = Ref::steal(PyException_GetTraceback(exception));
    if (!traceback) return;
    Ref module = Ref::steal(PyImport_ImportModule("traceback"));
    Ref lines = module ? Ref::steal(PyObject_CallMethod(module.get(), "format_tb", "O", traceback.get())) : Ref();
    Ref text = lines ? Ref::steal(PyUnicode_FromString("raised in a plan that C called:\n")) : Ref();
    Ref joined = text ? Ref::steal(PyUnicode_FromString("")) : Ref();
    joined = joined ? Ref::steal(PyUnicode_Join(joined.get(), lines.get())) : Ref();
    Ref note = joined ? Ref::steal(PyUnicode_Concat(text.get(), joined.get())) : Ref();
    Ref done = note ? Ref::steal(PyObject_CallMethod(exception, "add_note", "O", note.get())) : Ref();
    if (!done) PyErr_Clear();
}

}  // namespace

int failed_with_error(bool attached_before) {
    Ref exception = take_pending();
    keep_message_of(exception.get());
    if (attached_before) {
        restore_pending(std::move(exception));
    } else {
        last_exception = SharedRef::steal(exception.release());
        if (PyErr_Occurred()) PyErr_Clear();
    }
    return PYOP_RAISED;
}

int failed_with(int status, const char* message) {
    keep_message(message);
    last_exception.reset();
    return status;
}

int failed_for_memory() {
    if (attached()) PyErr_NoMemory();
    return failed_with(PYOP_NO_MEMORY, "there is no memory left for the call of a plan");
}

const char* failure_message() { return last_message; }

int raise_failure() {
    if (!last_exception) {
        PyErr_SetString(errors.base, *last_message ? last_message : "no call of a plan has failed on this thread");
        return -1;
    }
    SharedRef exception = std::move(last_exception);
    restore_pending(Ref::steal(exception.new_ref()));
    return -1;
}

PyObject* take_failure() {
    const SharedRef exception = std::move(last_exception);
    return exception ? exception.new_ref() : Py_NewRef(Py_None);
}

void raise_later() {
    // Of several the first, which may have led to the others.
    if (PyErr_Occurred()) {
        Ref exception = take_pending();
        if (!later) {
            note_traceback(exception.get());
            later = SharedRef::steal(exception.release());
        }
    }
    PyObject* const kind = class_of_later();
    waits_to_raise = kind && later && PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), kind) == 1;
    if (waits_to_raise) return;
    later.reset();
    PyErr_WriteUnraisable(nullptr);
}

PyObject* take_later(PyObject*, PyObject*) {
    const SharedRef exception = std::move(later);
    waits_to_raise = false;
    if (exception) return exception.new_ref();
    return PyObject_CallNoArgs(PyExc_RuntimeError);
}

}  // namespace pyop
