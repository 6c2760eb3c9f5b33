// plan/steps/reduce.h: what a call of np.sum and its kin, or of ufunc.reduce, asks for.
#pragma once

#include "array/reduction.h"
#include "graph/passes/rewrite.h"

namespace pyop {

struct ReductionCall {
    bool found = false;  // the node is such a call, and NumPy's loop for it can be called
    size_t input = 0;    // of the node: the array that is reduced
    AxisSet axis;
    Reduction reduction;
    std::string ufunc;
};

// 0, or -1 with an error set.
int read_reduction_call(const Rewrite& r, uint32_t node, ReductionCall& call);

}  // namespace pyop
