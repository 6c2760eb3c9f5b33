// kernels/exact/functions.h: declare the exact functions of one level.
#pragma once

#include "kernels/kernel.h"
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

extern const ExactFunction kExactSine, kExactCosine, kExactExponential, kExactLogarithm, kExactPowerOfTwo,
    kExactBinaryLogarithm;

}  // namespace pyop::PYOP_KERNEL_LEVEL
