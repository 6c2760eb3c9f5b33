// array/call/call_form.h: describe where the arrays of a call stand among its static arguments (CallForm).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/shared_ref.h"

namespace pyop {

// The arguments of a vectorcall, in order: code >= 0 is array number `code`, code < 0 is the static object
// number ~code. The last len(kwnames) of them are keywords. Immutable once built.
struct CallForm {
    std::vector<int32_t> order;
    SharedRef statics;  // tuple
    SharedRef kwnames;  // tuple of str, or empty

    Py_ssize_t n_keywords() const { return kwnames ? PyTuple_GET_SIZE(kwnames.get()) : 0; }
};

}  // namespace pyop
