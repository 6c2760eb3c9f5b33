// runtime/lazy.h: hold an object that is found or made at its first use and kept for the life of the process (Lazy).
//
// Not a static with an initialiser: its lock would be held while Python runs, and whoever waits for that lock may hold
// what Python waits for. Here nobody waits: of threads that make it at the same time one is first, and what the others
// made is dropped. Where making it fails nothing is kept, and the next call tries again.
//
// Threads: attached only; constant-initialised, never destroyed.
#pragma once

#include <atomic>  // std::atomic

#include "runtime/python.h"

namespace pyop {

class Lazy {
  public:
    // Borrowed; nullptr with the error of `make` set, which returns a new reference.
    template <typename Make>
    PyObject* get(Make make) {
        PyObject* known = object_.load(std::memory_order_acquire);
        if (PYOP_LIKELY(known != nullptr)) return known;
        PyObject* made = make();
        if (made && !object_.compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
            Py_DECREF(made);
            return known;
        }
        return made;
    }

    // Borrowed; null if nobody has asked for it.
    PyObject* known() const { return object_.load(std::memory_order_acquire); }

    PyObject* interned(const char* text) {
        return get([text] { return PyUnicode_InternFromString(text); });
    }

    // An attribute of a module of Python.
    PyObject* attribute(const char* module_name, const char* name) {
        return get([module_name, name]() -> PyObject* {
            PyObject* module = PyImport_ImportModule(module_name);
            PyObject* found = module ? PyObject_GetAttrString(module, name) : nullptr;
            Py_XDECREF(module);
            return found;
        });
    }

  private:
    std::atomic<PyObject*> object_{nullptr};
};

}  // namespace pyop
