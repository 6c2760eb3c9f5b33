// autograd/turn.h: Turn, by which threads take turns at Tensors and nodes where there is no GIL.
//
// Tensors, nodes, counters of versions and the lists between them point at each other, so one lock guards them all: the
// entries of this folder (slots, methods, functions of the module) begin with it, by `in_turn`. It is a critical
// section of CPython, and so is given up whenever the thread waits for something else; and it is given up here before
// Python code of users or of the wing is called (`outside_new`), so backward passes in Python run side by side. With a
// GIL all of this is nothing.
#pragma once

#include "runtime/forced_exit.h"
#include "runtime/without_gil.h"

namespace pyop {

inline PyObject* turn_object = nullptr;  // whose lock it is

// 0, or -1 with the error set.
inline int turn_init() {
    turn_object = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
    return turn_object ? 0 : -1;
}

class Turn {
  public:
    Turn() : lock_(turn_object) {}

  private:
    ObjectLock lock_;
};

// Gives the turn up for a scope.
class Outside {
  public:
#ifdef Py_GIL_DISABLED
    Outside() : section_(ObjectLock::held(turn_object)) {
        if (section_) PyCriticalSection_End(section_);
    }
    ~Outside() {
        if (section_) PyCriticalSection_Begin(section_, turn_object);
    }

  private:
    PyCriticalSection* const section_;
#else
    Outside() {}
    ~Outside() {}
#endif
};

namespace detail {

template <auto function>
struct InTurn;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct InTurn<function> {
    static Result call(Arguments... arguments) {
        const Turn turn;
        return function(arguments...);
    }
};

template <auto function>
consteval auto in_turn() {
    if constexpr (kWithoutGil)
        return &InTurn<function>::call;
    else
        return function;
}

}  // namespace detail

// A function that is called from Python, as it is with its turn.
template <auto function>
inline constexpr auto in_turn = detail::in_turn<function>();

// As vectorcall_new, out of turn.
inline PyObject* outside_new(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* names = nullptr) {
    const Outside outside;
    return vectorcall_new(callable, args, nargsf, names);
}

}  // namespace pyop
