// plan/trial.h: run a plan that took long to make in turn with the function itself at first: where the plan is slower
// the function runs itself from then on. python/pyop/compiling/worth.py has the times, and judges.
#pragma once

#include <utility>

#include "plan/guard.h"

namespace pyop {

// The plan of a guard is on trial, and with it all paths: until that is over calls take the general way. `judge`: None
// for none.
void begin_trial(Guard& guard, PyObject* judge);

namespace detail {
// The judge, who is away during a run; empty if he is. And back.
Ref take_judge(PyObject* self, Guard& guard);
void keep_judge(PyObject* self, Guard& guard, Ref judge);
// 1: the function itself is to run; 0: the plan; -1 with the error set.
int begin_run(PyObject* judge);
// After a run that has returned. -1 with the error set.
int end_run(PyObject* self, Guard& guard, Ref judge);
}  // namespace detail

// One run on trial of the function `self`, `plan` or `itself`, as the judge says; what it returns.
template <class Plan, class Itself>
PyObject* run_on_trial(PyObject* self, Guard& guard, const Plan& plan, const Itself& itself) {
    Ref judge = detail::take_judge(self, guard);  // a call in this one, or beside it, is on none
    if (!judge) return plan();
    const int turn = detail::begin_run(judge.get());
    Ref result = Ref::steal(turn < 0 ? nullptr : turn ? itself() : plan());
    if (!result) {
        detail::keep_judge(self, guard, std::move(judge));
        return nullptr;
    }
    return detail::end_run(self, guard, std::move(judge)) < 0 ? nullptr : result.release();
}

}  // namespace pyop
