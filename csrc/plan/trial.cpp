// plan/trial.cpp: decide who runs next, and what becomes of the plan.
#include "plan/trial.h"

#include <utility>

namespace pyop {

void begin_trial(Guard& guard, PyObject* judge) {
    if (judge == Py_None || guard.itself) return;
    guard.trial = Ref::borrow(judge);
    guard.ways.flat |= std::exchange(guard.flat, false);
    guard.ways.numbers |= std::exchange(guard.numbers, false);
    guard.ways.quick_alert |= std::exchange(guard.quick_alert, false);
}

namespace detail {

int begin_run(PyObject* judge) {
    const Ref itself = Ref::steal(PyObject_CallMethod(judge, "begin", nullptr));
    return itself ? PyObject_IsTrue(itself.get()) : -1;
}

Ref take_judge(PyObject* self, Guard& guard) {
    const ObjectLock lock(self);
    return std::exchange(guard.trial, {});
}

void keep_judge(PyObject* self, Guard& guard, Ref judge) {
    const ObjectLock lock(self);
    if (!guard.trial) guard.trial = std::move(judge);
}

int end_run(PyObject* self, Guard& guard, Ref judge) {
    const Ref stays = Ref::steal(PyObject_CallMethod(judge.get(), "end", nullptr));
    if (!stays) return -1;
    const ObjectLock lock(self);
    if (guard.trial) return 0;  // another path has begun one
    if (stays.get() == Py_None) {
        guard.trial = std::move(judge);
        return 0;
    }
    if (stays.get() == Py_False) {
        guard.itself = true;
        return 0;
    }
    guard.flat = guard.ways.flat;
    guard.numbers = guard.ways.numbers;
    guard.quick_alert = guard.ways.quick_alert;
    return 0;
}

}  // namespace detail

}  // namespace pyop
