// runtime/errors.cpp: make the exception classes, and take, note and put back a pending error.
#include "runtime/errors.h"

#include <cstdio>  // std::snprintf

namespace pyop {

ErrorTypes errors;

namespace {

PyObject* add_class(PyObject* module, const char* name, const char* doc, PyObject* bases) {
    Ref full = Ref::steal(PyUnicode_FromFormat("pyop.%s", name));
    if (!full || !bases) return nullptr;
    PyObject* cls = PyErr_NewExceptionWithDoc(PyUnicode_AsUTF8(full.get()), doc, bases, nullptr);
    if (!cls || PyModule_AddObjectRef(module, name, cls) < 0) return nullptr;
    return cls;
}

}  // namespace

std::string printable(PyObject* text) {
    const SavedError keep;
    std::string out;
    const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const Py_UCS4 c = PyUnicode_READ_CHAR(text, i);
        if (Py_UNICODE_ISPRINTABLE(c)) {
            Ref one = Ref::steal(PyUnicode_FromOrdinal(static_cast<int>(c)));
            const char* utf8 = one ? PyUnicode_AsUTF8(one.get()) : nullptr;
            if (utf8) out += utf8;
            continue;
        }
        char escape[12];
        std::snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        out += escape;
    }
    PyErr_Clear();
    return out;
}

std::string printable(std::string_view text) {
    bool plain = true;
    for (const char c : text) plain = plain && c >= ' ' && c <= '~';
    if (plain) return std::string(text);
    const SavedError keep;
    Ref decoded = Ref::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    if (decoded) return printable(decoded.get());
    PyErr_Clear();
    return "?";
}

std::string type_name(PyObject* o) { return printable(Py_TYPE(o)->tp_name); }

#if PY_VERSION_HEX >= 0x030C0000
Ref take_pending() { return Ref::steal(PyErr_GetRaisedException()); }

void restore_pending(Ref exception) { PyErr_SetRaisedException(exception.release()); }
#else
Ref take_pending() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return Ref::steal(value);
}

void restore_pending(Ref exception) {
    PyObject* value = exception.release();
    PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value, PyException_GetTraceback(value));
}
#endif

int errors_init(PyObject* module) {
    Ref on_exception = Ref::steal(PyTuple_Pack(1, PyExc_Exception));
    errors.base = add_class(module, "PyopError",
                            "Base class of the errors that pyop itself raises.\n\n"
                            ">>> issubclass(pyop.InputError, pyop.PyopError)\nTrue",
                            on_exception.get());
    if (!errors.base) return -1;
    Ref both = Ref::steal(PyTuple_Pack(3, errors.base, PyExc_TypeError, PyExc_ValueError));
    errors.input = add_class(module, "InputError",
                             "An argument does not fit what the op declares (both a TypeError and a ValueError).\n\n"
                             ">>> pyop.op(np.sum, 'float64[n] -> float64[]')(np.ones((1, 2)))\n"
                             "Traceback (most recent call last):\n    ...\n"
                             "pyop.InputError: argument 0 ('a') of sum is float64[1,2], but expects float64[n] ...",
                             both.get());
    errors.output = add_class(module, "OutputError",
                              "A function returned something else than its op declares (both a TypeError and a "
                              "ValueError).\n\n"
                              ">>> pyop.op(lambda x: x[1:], 'float64[n] -> float64[n]')(np.ones(3))\n"
                              "Traceback (most recent call last):\n    ...\n"
                              "pyop.OutputError: ...",
                              both.get());
    Ref on_runtime = Ref::steal(PyTuple_Pack(2, errors.base, PyExc_RuntimeError));
    errors.graph = add_class(module, "GraphError",
                             "A graph is built or run in a way that cannot work.\n\n"
                             ">>> pyop.Graph().compile()\n"
                             "Traceback (most recent call last):\n    ...\n"
                             "pyop.GraphError: graph 'graph' has no outputs and no stateful nodes: ...",
                             on_runtime.get());
    return errors.input && errors.output && errors.graph ? 0 : -1;
}

void raise_from_pending(PyObject* type, PyObject* message) {
    Ref cause = PyErr_Occurred() ? take_pending() : Ref();
    if (!message) return;
    PyErr_SetObject(type, message);
    if (!cause) return;
    Ref raised = take_pending();
    PyException_SetContext(raised.get(), cause.new_ref());
    PyException_SetCause(raised.get(), cause.release());
    restore_pending(std::move(raised));
}

void note_pending(PyObject* note) {
    if (!note || !PyErr_ExceptionMatches(PyExc_Exception)) return;
    Ref exception = take_pending();
    // An exception whose add_note fails keeps its own story; ours is not worth losing it.
    Ref done = Ref::steal(PyObject_CallMethod(exception.get(), "add_note", "(O)", note));
    if (!done) PyErr_Clear();
    restore_pending(std::move(exception));
}

Ref pending_text() {
    Ref exception = take_pending();
    Ref text = Ref::steal(PyObject_Str(exception.get()));
    if (!text) {
        PyErr_Clear();
        text = Ref::steal(PyUnicode_FromString(""));
    }
    restore_pending(std::move(exception));
    return text;
}

}  // namespace pyop
