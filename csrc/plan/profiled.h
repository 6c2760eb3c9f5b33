// plan/profiled.h: record the instructions of a plan in the profile. Only called while profiling().
#pragma once

#include <algorithm>

#include "array/memory/array_bytes.h"
#include "plan/execute.h"
#include "profile/scope.h"

namespace pyop {

// One event for `call()`, which runs instruction `i` on `arguments` and says 0 (done, with `results`), -1 (failed) or
// 1 (nothing was done).
template <typename Call>
PYOP_COLD int run_profiled(const Program& p, uint32_t i, PyObject* const* arguments, PyObject* const* results,
                           Call&& call) {
    Scope scope(p.profile_id, p.plan, i);
    const Instruction& ins = p.instructions[i];
    // A group may list an array twice, for kernels and for NumPy's loops.
    for (uint32_t k = 0; k < ins.n_inputs; ++k)
        if (std::find(arguments, arguments + k, arguments[k]) == arguments + k)
            scope.bytes_in += bytes_in_arrays(arguments[k]);
    const int status = call();
    if (status > 0) scope.forget();
    if (status == 0) {
        uint64_t bytes = 0;
        for (Py_ssize_t k = 0; k < ins.callee.n_out; ++k) bytes += bytes_in_arrays(results[k]);
        scope.succeeded(bytes);
    }
    return status;
}

}  // namespace pyop
