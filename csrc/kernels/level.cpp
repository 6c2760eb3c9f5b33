// kernels/level.cpp: the table of one level.
#include "kernels/level.h"

#include "kernels/loops.h"

#define PYOP_KERNEL_TEXT_(x) #x
#define PYOP_KERNEL_TEXT(x) PYOP_KERNEL_TEXT_(x)

namespace pyop::PYOP_KERNEL_LEVEL {

namespace {

Kernel find_kernel(Operation op, Element e) {
    for (const auto find : {find_arithmetic, find_rounding, find_extremum, find_comparison, find_bits, find_select})
        if (const Kernel kernel = find(op, e)) return kernel;
    return nullptr;
}

}  // namespace

extern const KernelLevel level;
const KernelLevel level = {PYOP_KERNEL_TEXT(PYOP_KERNEL_LEVEL),
                           find_kernel,
                           find_fused,
                           find_fused_tail,
                           find_cast,
                           find_fast,
                           find_product,
                           gather,
                           scatter};

}  // namespace pyop::PYOP_KERNEL_LEVEL
