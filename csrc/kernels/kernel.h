// kernels/kernel.h: run pyop's own loops over short contiguous blocks.
//
// A plan runs an elementwise group in blocks of 64 to 1024 elements that stay in the first cache. NumPy's loops cost
// about 15 ns a call, too much for such blocks, so the common operations have kernels here; everything else goes
// through NumPy's loops. This folder knows neither Python nor NumPy: data and counts only.
//
// The promise: what a kernel writes, and the floating-point flags it raises (invalid, division by zero, overflow,
// underflow), are what NumPy's loop writes and raises for the same operands; where an operation has two NaN operands,
// which of the two is passed on is left open, as it is in NumPy. Flags that were up before stay up. The functions of
// find_fast trade these bits for speed (at most 4 units in the last place off) and are only used where asked for.
//
// Any thread may run a kernel; kernels have no state. All find_* answer null where there is no kernel. They choose
// the widest instructions of this processor (level.h).
#pragma once

#include <span>         // std::span
#include <string_view>  // std::string_view

#include "kernels/operation.h"

namespace pyop {

// By the name of NumPy's ufunc; None if the name has no operation here. Names that NumPy gives two meanings ("divide"
// of integers) are told apart by the operands: that operation has no kernel for them.
Operation operation_of(std::string_view ufunc_name);

Kernel find_kernel(Operation op, Element operands);

// The same where one operand is a number, of which one element is read; it comes last whichever of the two it is. For
// comparisons, and + - * / of floating-point numbers.
Kernel find_with_number(Operation op, bool number_first, Element operands);

// Two or three operations at once. `left` and `right` None: that side is a plain operand.
//     (x left y) outer z      z outer (x right y)      (x left y) outer (z right w)
// The operands are given in reading order.
Kernel find_fused(Operation outer, Operation left, Operation right, Element e);

// One more operation on the result of these, for sums and differences with a product in them: the other operand comes
// last, or first.
Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e);

// NumPy's result of a safe or same-kind cast.
Kernel find_cast(Element from, Element to);

// precision="fast", by the name of NumPy's ufunc.
Kernel find_fast(std::string_view ufunc_name, Element e);

// Functions of float64 whose result is known wherever the rounding of libm's is proved (kernels/exact/lanes.h); of
// other arguments somebody else has to make something. At most so many elements at once.
constexpr std::ptrdiff_t kMostExact = 512;
struct OpenLanes {
    double arguments[kMostExact + 4];  // side by side
    int32_t places[kMostExact + 4];    // where they stood
    std::ptrdiff_t n = 0;
};
struct ExactFunction {
    std::string_view ufunc;
    // `slack`, in units of the last place: what is known to lie nearer to the middle between two numbers is left open.
    // `to` may be `x`.
    void (*settle)(const double* x, double* to, std::ptrdiff_t n, double slack, OpenLanes& open);
    double (*libm)(double);
    double bound;  // of libm's error, with that of rounding
    double own;    // the error before rounding
    // The sizes of arguments to try it with: most, at least, and at most; and whether negative ones are ordinary too.
    double usual, smallest, largest;
    bool of_negatives;
    double slack() const { return bound - 0.5 + own; }
};
std::span<const ExactFunction* const> exact_functions();

// False if some element is infinite or NaN. Each element is a chain of fused multiply-adds that begins at 0, in the
// order of the inner dimension. Null on a processor without these. Whether NumPy's product is that chain goes by its
// BLAS: array/loop/small_product.h tries it.
ProductKernel find_product(Element e, std::ptrdiff_t columns);

// Strided to contiguous, and back; stride 0 fills. Any alignment; no overlap.
void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize);
void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize);

}  // namespace pyop
