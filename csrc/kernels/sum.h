// kernels/sum.h: sums of several terms in one pass, as a stencil has them.
#pragma once

#include "kernels/kernel.h"

namespace pyop {

// ((x0 + x1) + x2) + …, of 4 to 6 terms; less y * z, of 3 to 5: the operands are given in that order. Each operation
// rounds by itself. Null for other numbers of terms, and other elements than F32 and F64.
Kernel find_sum(int terms, bool less_product, Element e);

}  // namespace pyop
