// plan/paths.h: hold the paths of a function that decides by the contents of arrays, and change from one to another
// within a call.
//
// A path is the plan of one sequence of outcomes. Its guards (plan/steps/guard_step.h) are computed in their order; at
// one that has another outcome the plan raises PathLeft, and the call goes on with the path that has the outcomes seen
// so far, from the beginning: a plan changes nothing before it ends. The path that ran last is in the Guard itself, so
// that a call costs its plan alone as long as calls go the same way.
#pragma once

#include "plan/guard.h"

namespace pyop {

enum class Way { Untraced, Plan, Itself };

// Where a call goes on that has left `path` at its guard number `guard` with that outcome. Way::Plan: the guard now
// has the plan of that path.
Way take_path(Guard& guard, int64_t path, size_t at, int64_t outcome);

// Keeps a path beside those of `guard`, as the one that ran last if it has a plan. One that is known already is not
// kept twice.
void add_path(Guard& guard, Path path);

// The plans of all paths: a tuple. New reference, or null with the error set.
PyObject* plans_of_paths_new(const Guard& guard);

// What the pending PathLeft says, which is taken away. False with another error set.
struct Leaving {
    int64_t path, outcome;
    size_t at;
};
bool read_leaving(Leaving& leaving);

// As long as it lives, what the path before has computed up to a guard is computed again without warnings.
class QuietUntil {
  public:
    explicit QuietUntil(size_t guard);
    ~QuietUntil();
    QuietUntil(const QuietUntil&) = delete;
    QuietUntil& operator=(const QuietUntil&) = delete;
    bool failed() const { return failed_; }

  private:
    bool failed_;
};

}  // namespace pyop
