// tests/cpp/module.cpp: the module pyop._ctests.
#include <exception>  // std::exception

#include "array/memory/pool.h"
#include "registry.h"
#include "runtime/reaper.h"
#include "runtime/ref.h"

namespace {

using pyop::Ref;

PyObject* names(PyObject*, PyObject*) {
    Ref out = Ref::steal(PyList_New(0));
    for (const ctests::Test& test : ctests::registry()) {
        Ref name = Ref::steal(PyUnicode_FromString(test.name));
        if (!out || !name || PyList_Append(out.get(), name.get()) != 0) {
            return nullptr;
        }
    }
    return out.release();
}

PyObject* run_tests(PyObject*, PyObject* name) {
    const char* wanted = PyUnicode_AsUTF8(name);
    if (wanted == nullptr) {
        return nullptr;
    }
    for (const ctests::Test& test : ctests::registry()) {
        if (std::string(test.name) != wanted) {
            continue;
        }
        try {
            test.run();
        } catch (const std::exception& failure) {
            PyErr_Clear();
            PyErr_SetString(PyExc_AssertionError, failure.what());
        }
        if (PyErr_Occurred()) {
            return nullptr;
        }
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_KeyError, "no C++ test is called '%s'", wanted);
}

PyMethodDef methods[] = {
    {"names", names, METH_NOARGS, "The names of the C++ tests."},
    {"run", run_tests, METH_O, "Run the C++ test of that name; AssertionError says what failed and where."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_ctests", "C++ tests of pyop's core.", -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__ctests() {
    Ref module = Ref::steal(PyModule_Create(&definition));
    if (!module || PyModule_AddFunctions(module.get(), ctests::scenario_methods) != 0 ||
        PyModule_AddFunctions(module.get(), ctests::bench_methods) != 0 ||
        PyModule_AddFunctions(module.get(), ctests::kernel_methods) != 0 ||
        PyModule_AddFunctions(module.get(), ctests::result_methods) != 0 ||
        PyModule_AddFunctions(module.get(), ctests::entry_methods) != 0 || pyop::numpy_init() != 0 ||
        pyop::pool_init() != 0 || pyop::reaper_init(module.get()) != 0) {
        return nullptr;
    }
    return module.release();
}
