// array/loop/flag_trial.h: try whether a loop of NumPy's leaves alone the flags that were raised before it.
//
// Some clear them: those that raise flags without meaning it. Who calls such a loop has to look at the flags before,
// and to raise them again; for a single number that takes as long as the loop.
#pragma once

#include "array/loop/strided_loop.h"

namespace pyop {

// True of loops over float32 or float64 that keep all flags up, whatever they compute: tried out with numbers of all
// kinds, alone and some beside each other, and remembered. And flags of their own mean something. Attached threads.
bool keeps_flags(const StridedLoop& loop);

}  // namespace pyop
