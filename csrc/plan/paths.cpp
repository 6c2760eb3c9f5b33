// plan/paths.cpp: find a path by the outcomes seen so far, and silence it while it catches up.
#include "plan/paths.h"

#include <algorithm>

#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// Of a path: its number, then the outcomes of its guards.
using Outcomes = std::vector<int64_t>;

bool begins_like(const Outcomes& path, const Outcomes& ran, size_t at, int64_t outcome) {
    return path.size() > at + 1 && path[at + 1] == outcome &&
           std::equal(ran.begin() + 1, ran.begin() + 1 + static_cast<std::ptrdiff_t>(at), path.begin() + 1);
}

bool same_way(const Outcomes& a, const Outcomes& b) {
    return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

void swap_in(Guard& guard, Path& path) {
    std::swap(guard.outcomes, path.outcomes);
    std::swap(guard.captured, path.captured);
    std::swap(guard.plan, path.plan);
    std::swap(guard.finish, path.finish);
    std::swap(guard.quick, path.quick);
}

bool read_number(PyObject* object, PyObject* name, int64_t& number) {
    Ref value = Ref::steal(PyObject_GetAttr(object, name));
    number = value ? PyLong_AsLongLong(value.get()) : -1;
    return !PyErr_Occurred();
}

}  // namespace

Way take_path(Guard& guard, int64_t path, size_t at, int64_t outcome) {
    const auto is_it = [&](const Outcomes& outcomes) { return !outcomes.empty() && outcomes[0] == path; };
    Outcomes ran;
    if (is_it(guard.outcomes)) ran = guard.outcomes;
    for (const Path& other : guard.others)
        if (is_it(other.outcomes)) ran = other.outcomes;
    if (ran.size() <= at) return Way::Plan;  // it is gone, as another thread was here: whatever is there now will tell
    if (begins_like(guard.outcomes, ran, at, outcome)) return Way::Plan;
    for (size_t k = guard.others.size(); k-- > 0;) {
        Path& other = guard.others[k];
        if (!begins_like(other.outcomes, ran, at, outcome)) continue;
        if (!other.plan) {
            if (other.outcomes.size() == at + 2) return Way::Itself;
            continue;
        }
        if (!other.captured.unchanged()) {
            const Path gone = std::move(other);
            guard.others.erase(guard.others.begin() + static_cast<std::ptrdiff_t>(k));
            continue;
        }
        // The one that ran last is the last of the others.
        std::rotate(guard.others.begin() + static_cast<std::ptrdiff_t>(k),
                    guard.others.begin() + static_cast<std::ptrdiff_t>(k) + 1, guard.others.end());
        swap_in(guard, guard.others.back());
        return Way::Plan;
    }
    return Way::Untraced;
}

void add_path(Guard& guard, Path path) {
    if (same_way(guard.outcomes, path.outcomes)) return;
    for (const Path& other : guard.others)
        if (same_way(other.outcomes, path.outcomes) && !other.plan == !path.plan) return;
    const bool runs = path.plan.get();
    guard.others.push_back(std::move(path));
    if (runs) swap_in(guard, guard.others.back());
}

PyObject* plans_of_paths_new(const Guard& guard) {
    Ref plans = Ref::steal(PyList_New(0));
    if (!plans || (guard.plan && PyList_Append(plans.get(), guard.plan.get()) < 0)) return nullptr;
    for (const Path& other : guard.others)
        if (PyList_Append(plans.get(), other.plan ? other.plan.get() : Py_None) < 0) return nullptr;
    return PyList_AsTuple(plans.get());
}

bool read_leaving(Leaving& leaving) {
    const Ref left = take_pending();
    PyErr_Clear();
    int64_t at = 0;
    const bool read = read_number(left.get(), up_attributes.path, leaving.path) &&
                      read_number(left.get(), up_attributes.guard, at) &&
                      read_number(left.get(), up_attributes.outcome, leaving.outcome);
    leaving.at = static_cast<size_t>(at);
    return read;
}

QuietUntil::QuietUntil(size_t guard) {
    const Ref done = Ref::steal(PyObject_CallFunction(up_calls.quiet_begin, "n", static_cast<Py_ssize_t>(guard)));
    failed_ = !done;
}

QuietUntil::~QuietUntil() {
    if (failed_) return;
    const SavedError keep;
    const Ref done = Ref::steal(PyObject_CallNoArgs(up_calls.quiet_end));
    if (!done) PyErr_Clear();
}

}  // namespace pyop
