// plan/steps/reduce.h: read what a call of np.sum and its kin, of ufunc.reduce, or of np.mean and its kin asks for.
#pragma once

#include "array/reduction/reduction.h"
#include "graph/passes/rewrite.h"

namespace pyop {

class TapeBuilder;
struct TapeValue;

struct ReductionCall {
    bool found = false;  // the node is such a call, and NumPy's loop for it can be called
    size_t input = 0;    // of the node: the array that is reduced
    AxisSet axis;
    Reduction reduction;
    std::string ufunc;
    bool own_loop = false;  // NumPy's, which sets no Python error
};

enum class Moment { Mean, Variance, Deviation };

struct MomentCall {
    ReductionCall sum;  // of the elements, in what the result is of
    Moment moment = Moment::Mean;
    std::string_view name;
    npy_intp ddof = 0;
    PyArray_Descr* wanted = nullptr;  // dtype= of the sum; borrowed, lives for ever
};

// 0, or -1 with an error set. `where`: if not null, may be set to the input that chooses the elements, else to -1;
// if null, calls with where= are not for the caller.
int read_reduction_call(const Rewrite& r, uint32_t node, ReductionCall& call, int32_t* where = nullptr);
int read_moment_call(const Rewrite& r, uint32_t node, MomentCall& call);

// A reduction of a block, or its mean (plan/tape/record_reduction.cpp). False: it is more than a tape can.
bool record_reduction(TapeBuilder& tape, const ReductionCall& call, const TapeValue& x, bool mean, TapeValue& result);

// What np.mean does with a sum of `by` elements: values of float64, or of float32 if not `wide`, side by side.
void divide_sums(char* data, npy_intp n, npy_intp by, bool wide);

}  // namespace pyop
