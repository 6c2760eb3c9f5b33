// src/module.cpp: the extension pyop._core: where it may be imported, and what is in it.
//
// The hot types (Contract, Value, Node, GraphBase, Plan, Op) are raw heap types of csrc/ (core_init.cpp); pybind11
// binds the cold rest.
#include <pybind11/pybind11.h>

#include "core_init.h"
#include "runtime/ref.h"

namespace py = pybind11;

void register_array_hooks(py::module_&);  // array_hooks.cpp
void register_debug(py::module_&);  // debug.cpp
void register_build_info(py::module_&);  // build_info.cpp
void register_hooks(py::module_&);  // hooks.cpp
void register_memory_hooks(py::module_&);  // memory_hooks.cpp
void register_profile(py::module_&);  // profile.cpp
void register_refusal_hooks(py::module_&);  // refusal_hooks.cpp

namespace {

constexpr char NOT_HERE[] =
    "pyop cannot be imported in a sub-interpreter: its objects belong to the main interpreter of a process; import it "
    "there, or use processes (multiprocessing, subprocess)";

bool in_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

// Whether only one thread at a time runs Python. A free-threaded build turns the GIL on for the import of a module that
// does not say it can do without it, which none of ours does, and leaves it on; unless the user has forbidden that. A
// build of PYOP_WITHOUT_GIL, for the storms of tests/storms, comes without asking.
bool gil_is_on() {
#if defined(Py_GIL_DISABLED) && !PYOP_WITHOUT_GIL
    PyObject* asked = PySys_GetObject("_is_gil_enabled");  // borrowed
    const pyop::Ref on = pyop::Ref::steal(asked ? PyObject_CallNoArgs(asked) : nullptr);
    PyErr_Clear();
    return on.get() == Py_True;
#else
    return true;
#endif
}

constexpr char NO_GIL[] =
    "pyop cannot be imported with the GIL off (PYTHON_GIL=0 or -X gil=0): it is what guards pyop's graphs and plans. "
    "Leave that setting away and the import turns the GIL on, with a RuntimeWarning; with PYTHON_GIL=1 or -X gil=1 "
    "there is none";

}  // namespace

// What the import system calls is below, and calls this.
#define PyInit__core pyop_init_core

PYBIND11_MODULE(_core, m) {
    m.doc() = "The C++ core of pyop. Private: use the names of the package.";
    // CPython 3.13 calls PyInit__core in the main interpreter for a sub-interpreter, and only this in that itself.
    if (!in_main_interpreter()) throw py::import_error(NOT_HERE);
    if (pyop::core_init(m.ptr()) < 0) throw py::error_already_set();
    register_hooks(m);
    register_refusal_hooks(m);
    register_array_hooks(m);
    register_memory_hooks(m);
    register_debug(m);
    register_profile(m);
    register_build_info(m);
}

#undef PyInit__core

// pybind11 asks for the GIL by PyGILState_Ensure while it starts, which in a sub-interpreter is that of the main one:
// on CPython 3.11 the import would wait for ever. So we look where we are before anything else.
PyMODINIT_FUNC PyInit__core() {
    if (!in_main_interpreter()) {
        PyErr_SetString(PyExc_ImportError, NOT_HERE);
        return nullptr;
    }
    if (!gil_is_on()) {
        PyErr_SetString(PyExc_ImportError, NO_GIL);
        return nullptr;
    }
    return pyop_init_core();
}
