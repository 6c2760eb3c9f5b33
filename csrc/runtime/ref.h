// runtime/ref.h: own a Python object in code that runs with a thread attached (Ref).
//
// A Ref decrefs where it dies, so it must die on an attached thread. What may die anywhere else is a
// SharedRef (shared_ref.h). The name of a constructor tells what happens to the count:
//   Ref::steal(p)   takes over the caller's reference (p may be null: an error is set)
//   Ref::borrow(p)  adds a reference of its own to a borrowed pointer
#pragma once

#include <utility>  // std::exchange

#include "runtime/forced_exit.h"
#include "runtime/python.h"

namespace pyop {

class Ref {
  public:
    Ref() = default;
    Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
    Ref(const Ref& other) noexcept : p_(Py_XNewRef(other.p_)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(p_, other.p_);
        return *this;
    }
    ~Ref() { reset(); }

    static Ref steal(PyObject* p) noexcept { return Ref(p); }
    static Ref borrow(PyObject* p) noexcept { return Ref(Py_XNewRef(p)); }

    PyObject* get() const noexcept { return p_; }
    explicit operator bool() const noexcept { return p_ != nullptr; }

    // Gives the reference away.
    [[nodiscard]] PyObject* release() noexcept { return std::exchange(p_, nullptr); }
    PyObject* new_ref() const noexcept { return Py_XNewRef(p_); }
    void reset() noexcept {
        if (PyObject* p = std::exchange(p_, nullptr)) {
            decref(p);
        }
    }

  private:
    explicit Ref(PyObject* p) noexcept : p_(p) {}
    PyObject* p_ = nullptr;
};

// What a weak reference refers to; empty if that is gone.
inline Ref referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* found = nullptr;
    if (PyWeakref_GetRef(weak, &found) < 0) PyErr_Clear();  // no weak reference: never
    return Ref::steal(found);
#else
    PyObject* found = PyWeakref_GET_OBJECT(weak);
    return found == Py_None ? Ref() : Ref::borrow(found);
#endif
}

}  // namespace pyop
