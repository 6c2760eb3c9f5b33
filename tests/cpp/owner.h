// tests/cpp/owner.h: what the scenarios destroy: a bare SharedRef, or a PyNode that owns its callable through
// one.
#pragma once

#include <memory>   // std::make_unique
#include <utility>  // std::move
#include <variant>  // std::variant
#include <vector>   // std::vector

#include "graph/node.h"
#include "runtime/ref.h"
#include "runtime/shared_ref.h"

namespace ctests {

// Which of the two to make; `own_through` sets it, once in a process.
inline bool owns_through_node = false;

class Owner {
  public:
    // Takes over the reference, which may be null. Attached threads.
    static Owner steal(PyObject* object) {
        pyop::SharedRef ref = pyop::SharedRef::steal(object);
        Owner owner;
        if (owns_through_node) {
            owner.held_ = std::make_unique<pyop::PyNode>(std::move(ref));
        } else {
            owner.held_ = std::move(ref);
        }
        return owner;
    }

    // Lets go. Any thread.
    void reset() noexcept { held_ = pyop::SharedRef(); }

    PyObject* get() const noexcept {
        const auto* node = std::get_if<Node>(&held_);
        return node != nullptr ? static_cast<pyop::PyNode&>(**node).fn() : std::get<pyop::SharedRef>(held_).get();
    }

  private:
    // As graphs do: through the base class.
    using Node = std::unique_ptr<pyop::Node>;
    std::variant<pyop::SharedRef, Node> held_;
};

using Owners = std::vector<Owner>;

// Makes an owner of each item. Returns false, with the error set, if `objects` is no sequence.
inline bool take(PyObject* objects, Owners& out) {
    pyop::Ref sequence = pyop::Ref::steal(PySequence_Fast(objects, "a sequence of objects is needed"));
    if (!sequence) {
        return false;
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
    out.reserve(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        out.push_back(Owner::steal(Py_NewRef(PySequence_Fast_GET_ITEM(sequence.get(), i))));
    }
    return true;
}

}  // namespace ctests
