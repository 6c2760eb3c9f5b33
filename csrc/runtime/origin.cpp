// runtime/origin.cpp: walk the frames to the first that is not pyop's own, and word places.
#include "runtime/origin.h"

#include <frameobject.h>

#include "runtime/lazy.h"
#include "runtime/shown_place.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

bool is_in_our_files(PyObject* filename) {
    static constinit Lazy operators;
    PyObject* operators_file = operators.interned("numpy/lib/mixins.py");
    if (!operators_file) {
        PyErr_Clear();
        return false;
    }
    Py_ssize_t hit = PyUnicode_Tailmatch(filename, up_calls.package_directory, 0, PY_SSIZE_T_MAX, -1);
    // The operators of what stands for an array under vmap.
    if (hit == 0) hit = PyUnicode_Tailmatch(filename, operators_file, 0, PY_SSIZE_T_MAX, 1);
    if (hit < 0) PyErr_Clear();
    return hit > 0;
}

// Node after node is made in one file: the answer for the last one is kept, with its name.
bool is_ours(PyCodeObject* code) {
#ifdef Py_GIL_DISABLED
    return is_in_our_files(code->co_filename);
#else
    static PyObject* last = nullptr;
    static bool is_last_ours = false;
    if (code->co_filename == last) return is_last_ours;
    is_last_ours = is_in_our_files(code->co_filename);
    Py_XSETREF(last, Py_NewRef(code->co_filename));
    return is_last_ours;
#endif
}

}  // namespace

Origin current_origin() {
    const bool failed = PyErr_Occurred();  // before: where memory runs out the interpreter makes no frames
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    Origin origin;
    while (frame) {
        PyCodeObject* code = PyFrame_GetCode(frame);
        Py_DECREF(code);  // the frame keeps it
        if (!is_ours(code)) {
            origin = {code, PyFrame_GetLasti(frame), nullptr};
            break;
        }
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    if (!frame && !failed) PyErr_Clear();
    Py_XDECREF(frame);
    return origin;
}

Ref kept_place(const Origin& origin) {
    if (origin.text) return Ref::borrow(origin.text);
    if (!origin.code) return Ref::steal(PyUnicode_FromString("an unknown place"));
    const int line = PyCode_Addr2Line(origin.code, origin.instruction);
    return Ref::steal(PyUnicode_FromFormat("%U:%d", origin.code->co_filename, line));
}

Ref shown_place(Ref text) {
    // Where IPython is not loaded nobody runs cells, and no Python is called.
    if (!text || !PyDict_GetItemString(PyImport_GetModuleDict(), "IPython")) return text;
    Ref shown = Ref::steal(PyObject_CallOneArg(up_calls.shown_place, text.get()));
    if (shown && PyUnicode_Check(shown.get())) return shown;
    PyErr_Clear();
    return text;
}

Ref origin_text(const Origin& origin) { return shown_place(kept_place(origin)); }

}  // namespace pyop
