// array/native/python_math.h: compute functions of Python's `math` that are CPython's own, not the C library's.
#pragma once

namespace pyop {

// `math.hypot` of two and three numbers: as CPython 3.10 and 3.11 split products into halves, and as it multiplies from
// 3.12 on, by fused multiply-add.
double hypot2_split(double x, double y);
double hypot3_split(double x, double y, double z);
double hypot2_fused(double x, double y);
double hypot3_fused(double x, double y, double z);

}  // namespace pyop
