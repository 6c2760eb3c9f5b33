// kernels/level.h: compile the same kernels for several generations of processors.
//
// Every source of this folder that includes loops.h is compiled once a level, inside a namespace named after the
// level, and only ever calls functions of that namespace or compiler built-ins: code for new instructions must not
// become the one copy of an inline function that the whole extension uses. A table of plain function pointers, chosen
// once at load, does the dispatch; the loader's own mechanism (ifunc) runs too early for the sanitizers.
#pragma once

#include <span>  // std::span

#include "kernels/kernel.h"

namespace pyop {

struct KernelLevel {
    const char* name;
    Kernel (*find_kernel)(Operation op, Element operands);
    Kernel (*find_with_number)(Operation op, bool number_first, Element operands);
    Kernel (*find_fused)(Operation outer, Operation left, Operation right, Element e);
    Kernel (*find_fused_tail)(Operation tail, bool inner_first, Operation outer, Operation left, Operation right,
                              Element e);
    Kernel (*find_cast)(Element from, Element to);
    Kernel (*find_fast)(std::string_view ufunc_name, Element e);
    std::span<const ExactFunction* const> (*exact_functions)();
    ProductKernel (*find_product)(Element e, std::ptrdiff_t columns);
    void (*gather)(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize);
    void (*scatter)(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize);
};

// What this processor can run, the best one last; never empty.
std::span<const KernelLevel* const> kernel_levels();

}  // namespace pyop
