// kernels/sum.h: sum several terms in one pass, as a stencil has them.
#pragma once

#include "kernels/operation.h"

namespace pyop {

// What is done with a sum: nothing, q * sum, or, less y * z, z + q * sum: a step of diffusion.
enum class SumTail : uint8_t { None, Scaled, ScaledAdded };

// ((x0 + x1) + x2) + …, of 4 to 6 terms; less y * z, of 3 to 5: the operands are given in that order, q behind them.
// With a tail, y and q are read once, as numbers: sums of 4 or 5 terms are scaled, and those of 4 or 6 less a product
// are scaled and added, in processors with AVX2. Each operation rounds by itself. Null for other numbers of terms, and
// other elements than F32 and F64.
Kernel find_sum(int terms, bool less_product, SumTail tail, Element e);

}  // namespace pyop
