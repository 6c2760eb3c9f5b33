// array/loop/exact_loop.h: give NumPy's results by kernels where those are proved, and ask its loop elsewhere.
//
// Where NumPy's loop calls libm for one number after the other, most results can be told without: libm's error is known
// to be small, so a result that is not nearly in the middle between two numbers is the nearest one (kernels/exact/).
// What is left, a tenth or less, goes through NumPy's own loop, as does everything that is not ordinary.
//
// The proof needs that NumPy's loop is libm's, and that the bound holds of this libm. Both are tried once for each
// function, when somebody first asks for it: NumPy's loop against the function of libm on arguments whose results lie
// so near to the middle that another implementation would betray itself, and against the kernel on those that lie just
// so far from it that the kernel answers. A function that fails stays with NumPy's loop for the life of the process; so
// do all with PYOP_EXACT_KERNELS=0 in the environment, and where libm is not glibc.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array/loop/strided_loop.h"
#include "kernels/kernel.h"

namespace pyop {

// For NumPy's own loop of the ufunc of this name, which lives as long as the process; null if there is none. Attached
// threads. The kernel is a Kernel like any other.
Kernel find_exact_kernel(std::string_view ufunc, const StridedLoop& loop);

bool is_exact_kernel(Kernel kernel);

// What has become of each function that has such a kernel on this processor: "on", "not asked for", or why it is off.
std::vector<std::pair<std::string, std::string>> exact_kernel_states();

}  // namespace pyop
