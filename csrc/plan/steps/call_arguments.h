// plan/steps/call_arguments.h: tell what a node's call passes for each parameter of its function.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "graph/graph.h"

namespace pyop {

class CallArguments {
  public:
    static constexpr size_t kMax = 12;
    struct Item {
        int32_t input = -1;         // of the node
        PyObject* fixed = nullptr;  // a static argument; borrowed
        bool given() const { return input >= 0 || fixed; }
        // Whether it is left out, or is what it is by default.
        bool absent_or(PyObject* value) const { return !given() || fixed == value; }
    };

    // `parameters`: by position; what stands behind "*" can only be a keyword. False if the call does not fit.
    bool bind(const PyNode& node, std::span<const std::string_view> parameters);

    const Item& operator[](size_t parameter) const { return items_[parameter]; }

  private:
    std::array<Item, kMax> items_;
};

// True, False, or `otherwise` if the argument is not given. -1 for anything else.
int flag_argument(const CallArguments::Item& item, bool otherwise);

// What `table` has for a function of NumPy, looked up by its name below numpy ("linalg.solve") the first time; null
// if it is none of these. Names that this NumPy does not have are passed over. Attached threads.
template <typename Entry>
struct Named {
    std::string_view name;
    Entry entry;
};
PyObject* find_below_numpy(std::string_view name);  // new reference; null without an error

template <typename Entry, size_t N>
class FunctionTable {
  public:
    explicit FunctionTable(const Named<Entry> (&rows)[N]) : rows_(rows) {
        for (size_t k = 0; k < N; ++k) functions_[k] = find_below_numpy(rows[k].name);  // kept for ever
    }
    const Named<Entry>* find(PyObject* function) const {
        for (size_t k = 0; k < N; ++k)
            if (functions_[k] == function) return &rows_[k];
        return nullptr;
    }

  private:
    const Named<Entry> (&rows_)[N];
    std::array<PyObject*, N> functions_{};
};

// The table of these rows, made once and kept for ever. Not a static with an initialiser, whose lock would be held
// while NumPy is asked, which may run Python: another thread that waits for it would keep the GIL.
template <const auto& rows>
const auto& function_table() {
    using Table = decltype(FunctionTable(rows));
    static const Table* known = nullptr;
    if (PYOP_UNLIKELY(!known)) {
        auto made = std::make_unique<Table>(rows);
        if (!known) known = made.release();
    }
    return *known;
}

// The spec's dtype of an input, if it is one of NumPy's own numbers or bool; else null. Borrowed.
PyArray_Descr* builtin_dtype(const Graph& g, Edge e);

// A static dtype= argument as one of NumPy's own numbers or bool: 1 (borrowed; null if not given or None), 0 for
// anything else.
int dtype_argument(const CallArguments::Item& item, PyArray_Descr*& dtype);

// Whether a node is a plain call of its function with arrays as they are: undeclared, and stateless.
bool is_plain_call(const PyNode& node);

}  // namespace pyop
