// kernels/exact/functions.cpp: list the exact functions; empty below AVX2.
#include "kernels/exact/functions.h"

namespace pyop::PYOP_KERNEL_LEVEL {

#if defined(__AVX2__) && defined(__FMA__)

std::span<const ExactFunction* const> exact_functions() {
    static constexpr const ExactFunction* kAll[] = {&kExactSine,      &kExactCosine,     &kExactExponential,
                                                    &kExactLogarithm, &kExactPowerOfTwo, &kExactBinaryLogarithm};
    return kAll;
}

#else

std::span<const ExactFunction* const> exact_functions() { return {}; }

#endif

}  // namespace pyop::PYOP_KERNEL_LEVEL
