// kernels/level.cpp: the table of one level.
#include "kernels/level.h"

#include "kernels/loops.h"

// What the level below does as fast is compiled for that one alone.
#ifndef PYOP_KERNEL_BELOW
#define PYOP_KERNEL_BELOW PYOP_KERNEL_LEVEL
#endif

#define PYOP_KERNEL_TEXT_(x) #x
#define PYOP_KERNEL_TEXT(x) PYOP_KERNEL_TEXT_(x)

namespace pyop::PYOP_KERNEL_BELOW {

Kernel find_rounding(Operation op, Element e);
Kernel find_fused(Operation outer, Operation left, Operation right, Element e);
Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e);
std::span<const ExactFunction* const> exact_functions();

}  // namespace pyop::PYOP_KERNEL_BELOW

namespace pyop::PYOP_KERNEL_LEVEL {

namespace below = pyop::PYOP_KERNEL_BELOW;

namespace {

Kernel find_kernel(Operation op, Element e) {
    for (const auto find :
         {find_arithmetic, below::find_rounding, find_extremum, find_comparison, find_bits, find_select})
        if (const Kernel kernel = find(op, e)) return kernel;
    return nullptr;
}

}  // namespace

extern const KernelLevel level;
const KernelLevel level = {PYOP_KERNEL_TEXT(PYOP_KERNEL_LEVEL),
                           find_kernel,
                           below::find_fused,
                           below::find_fused_tail,
                           find_cast,
                           find_fast,
                           below::exact_functions,
                           find_product,
                           gather,
                           scatter};

}  // namespace pyop::PYOP_KERNEL_LEVEL
