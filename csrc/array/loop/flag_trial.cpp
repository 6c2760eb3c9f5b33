// array/loop/flag_trial.cpp: call loops with all flags up.
#include "array/loop/flag_trial.h"

#include <limits>

#include "array/loop/fp_flags.h"
#include "runtime/memo.h"

namespace pyop {

namespace {

#if defined(__x86_64__)
// <cfenv> raises some in the one register and some in the other; a loop may clear either.
void raise_all() {
    std::feraiseexcept(kFpErrors);
    _mm_setcsr(_mm_getcsr() | kFpErrors);
}
bool all_up() { return fp_errors() == kFpErrors && (x87_errors() & FE_OVERFLOW); }
#else
void raise_all() { std::feraiseexcept(kFpErrors); }
bool all_up() { return all_fp_errors() == kFpErrors; }
#endif

constexpr npy_intp kMost = 19;  // more than two vectors of float32, and a rest

template <typename T>
T sample(npy_intp k) {
    using Limits = std::numeric_limits<T>;
    const T samples[] = {T{0.5},
                         -T{0.5},
                         T{0},
                         -T{0},
                         T{1},
                         -T{2},
                         T{30},
                         -T{700},
                         T{10000},
                         T{-10000},
                         Limits::max(),
                         Limits::lowest(),
                         Limits::min(),
                         Limits::denorm_min(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN()};
    return samples[static_cast<size_t>(k) % std::size(samples)];
}

template <typename T>
bool keeps(const StridedLoop& loop) {
    const auto n_operands = static_cast<size_t>(loop.n_inputs() + loop.n_outputs());
    T memory[StridedLoop::kMaxOperands][kMost];
    char* data[StridedLoop::kMaxOperands];
    npy_intp strides[StridedLoop::kMaxOperands];
    for (size_t k = 0; k < n_operands; ++k) {
        data[k] = reinterpret_cast<char*>(memory[k]);
        strides[k] = sizeof(T);
    }
    for (const npy_intp n : {1, 2, 4, 8, 19}) {
        for (npy_intp shift = 0; shift < 17; ++shift) {
            for (npy_intp turn = 0; turn < (loop.n_inputs() > 1 ? 17 : 1); ++turn) {
                for (npy_intp i = 0; i < n; ++i)
                    for (size_t k = 0; k < n_operands; ++k) memory[k][i] = sample<T>(shift + i + (k == 1 ? turn : 0));
                raise_all();
                if (loop(data, n, strides) != 0 || !all_up()) return false;
            }
        }
    }
    return true;
}

bool try_out(const StridedLoop& loop) {
    if (loop.ignores_flags()) return false;
    const int type = loop.dtype(0)->type_num;
    for (int k = 0; k < loop.n_inputs() + loop.n_outputs(); ++k)
        if (loop.dtype(k)->type_num != type) return false;
    const bool kept = type == NPY_DOUBLE ? keeps<double>(loop) : type == NPY_FLOAT && keeps<float>(loop);
    clear_all_fp_errors();
    return kept;
}

}  // namespace

bool keeps_flags(const StridedLoop& loop) {
    static constinit Memo<const StridedLoop*, bool> known;  // loops live as long as the process
    const bool* keeps = known.find(&loop);
    return keeps ? *keeps : known.keep(&loop, try_out(loop));
}

}  // namespace pyop
