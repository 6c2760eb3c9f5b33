// runtime/refusal.cpp: note refusals in the innermost watch, and raise the first when the watched call ends.
#include "runtime/refusal.h"

#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/items.h"
#include "runtime/lazy.h"
#include "runtime/origin.h"
#include "runtime/up_calls.h"
#include "runtime/without_gil.h"

namespace pyop {

namespace {

// What was noted in the innermost watch, a list of the first, its place and the last, owned. Greenlets may leave
// watches in another order than they entered them, so lists are owned by count, and nothing points into a stack.
constinit thread_local PyObject* innermost = nullptr;

// All watches of all threads, a list; owned for the life of the process, null before the first one.
constinit Lazy open_watches;

int open_watch(PyObject* watch) {
    PyObject* const watches = open_watches.get([] { return PyList_New(0); });
    return watches ? PyList_Append(watches, watch) : -1;
}

void close_watch(PyObject* watch) {
    PyObject* const watches = open_watches.known();
    const ObjectLock lock(watches);
    for (Py_ssize_t i = PyList_GET_SIZE(watches); i-- > 0;) {
        if (PyList_GET_ITEM(watches, i) != watch) continue;
        const SavedError keep;
        if (PyList_SetSlice(watches, i, i + 1, nullptr) < 0) PyErr_Clear();
        return;
    }
}

void note_in(PyObject* watch, PyObject* exception) {
    const ObjectLock lock(watch);  // the watch of another thread, perhaps
    int done = 0;
    if (PyList_GET_SIZE(watch) == 0) {
        Ref place = origin_text(current_origin());
        done = place ? PyList_Append(watch, exception) : -1;
        if (done == 0) done = PyList_Append(watch, place.get());
        if (done == 0) done = PyList_Append(watch, exception);
    } else {
        done = PyList_SetItem(watch, PyList_GET_SIZE(watch) - 1, Py_NewRef(exception));
    }
    if (done < 0) PyErr_Clear();  // no memory: the error itself still stands
}

// What the function made of its refusal goes; the refusal itself is raised, and noted by the watch around this one.
PYOP_COLD void raise_caught(Ref refusal, PyObject* place) {
    Ref note = Ref::steal(PyUnicode_FromFormat(
        "at %U, where the function caught this error and went on, another way than it would have gone with arrays",
        place));
    restore_pending(std::move(refusal));
    note_pending(note.get());
    note_pending_refusal();
}

// What failed may say nothing of the refusal that it comes from, which has the remedy: struct.error, say.
PYOP_COLD void explain_by(PyObject* noted) {
    PyObject* refusal = PyList_GET_ITEM(noted, PyList_GET_SIZE(noted) - 1);
    Ref error = take_pending();
    Ref cause = Ref::borrow(error.get());
    for (int depth = 0; cause && depth < 20; ++depth) {
        if (cause.get() == refusal) return restore_pending(std::move(error));
        PyObject* before = PyException_GetCause(cause.get());
        cause = Ref::steal(before ? before : PyException_GetContext(cause.get()));
    }
    if (Ref before = Ref::steal(PyException_GetContext(error.get())); !before)
        PyException_SetContext(error.get(), Py_NewRef(refusal));
    Ref text = Ref::steal(PyUnicode_FromFormat("after a refusal: %S", refusal));
    if (!text) PyErr_Clear();
    restore_pending(std::move(error));
    note_pending(text.get());
}

// Where a library asks that has a counterpart in pyop, the error names it: python/pyop/refusals.py.
PYOP_COLD void name_remedy() {
    Ref error = take_pending();
    Ref remedy = Ref::steal(PyObject_CallNoArgs(up_calls.remedy_of_caller));
    if (remedy && PyUnicode_Check(remedy.get())) {
        PyErr_Format(PyExc_TypeError, "%S; %U", error.get(), remedy.get());
        return;
    }
    PyErr_Clear();  // the error itself still stands
    restore_pending(std::move(error));
}

}  // namespace

bool watching() { return innermost != nullptr; }

void note_refusal(PyObject* exception) {
    // For refusals.py, was_refused.
    if (PyObject_SetAttrString(exception, "_pyop_refused", Py_True) < 0) PyErr_Clear();
    if (innermost) return note_in(innermost, exception);
    note_everywhere(exception);
}

void note_everywhere(PyObject* exception) {
    PyObject* const watches = open_watches.known();
    for (Py_ssize_t i = 0; watches && i < PyList_GET_SIZE(watches); ++i)
        if (const Ref watch = item_of(watches, i)) note_in(watch.get(), exception);
}

void note_pending_refusal() {
    PyObject* const watches = open_watches.known();
    if (!innermost && (!watches || PyList_GET_SIZE(watches) == 0)) return;
    Ref exception = take_pending();
    note_refusal(exception.get());
    restore_pending(std::move(exception));
}

PyObject* refuse(PyObject* type, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(type, format, arguments);
    va_end(arguments);
    if (type == PyExc_TypeError) name_remedy();
    note_pending_refusal();
    return nullptr;
}

PyObject* call_watched(PyObject* fn, PyObject* args, PyObject* kwargs, bool of_user) {
    Ref noted = Ref::steal(PyList_New(0));
    if (!noted || open_watch(noted.get()) < 0) return nullptr;
    Ref outer = Ref::steal(std::exchange(innermost, noted.new_ref()));
    Ref result = Ref::steal(survive([&] { return PyObject_Call(fn, args, kwargs); }));
    Ref left = Ref::steal(std::exchange(innermost, outer.release()));
    close_watch(noted.get());
    if (PyList_GET_SIZE(noted.get()) == 0) return result.release();
    if (PyList_GET_SIZE(noted.get()) < 3) return result ? PyErr_NoMemory() : nullptr;
    if (result) {
        raise_caught(Ref::borrow(PyList_GET_ITEM(noted.get(), 0)), PyList_GET_ITEM(noted.get(), 1));
    } else {
        explain_by(noted.get());
        if (of_user && innermost) note_in(innermost, PyList_GET_ITEM(noted.get(), 0));
    }
    return nullptr;
}

}  // namespace pyop
