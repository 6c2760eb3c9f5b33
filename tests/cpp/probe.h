// tests/cpp/probe.h: Python objects that tell C++ when they die.
#pragma once

#include <functional>  // std::function
#include <utility>     // std::move

#include "registry.h"
#include "runtime/python.h"
#include "runtime/ref.h"

namespace ctests {

using OnDeath = std::function<void()>;

inline void probe_died(PyObject* capsule) {
    auto* on_death = static_cast<OnDeath*>(PyCapsule_GetPointer(capsule, "probe"));
    (*on_death)();
    delete on_death;
}

// A new object that calls `on_death` when its last reference goes.
inline pyop::Ref probe_new(OnDeath on_death) {
    PyObject* capsule = PyCapsule_New(new OnDeath(std::move(on_death)), "probe", probe_died);
    EXPECT(capsule != nullptr);
    return pyop::Ref::steal(capsule);
}

// A new object that adds one to `deaths` when its last reference goes.
inline pyop::Ref probe_new(int& deaths) {
    return probe_new([&deaths] { ++deaths; });
}

}  // namespace ctests
