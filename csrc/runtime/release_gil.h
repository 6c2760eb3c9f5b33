// runtime/release_gil.h: define from what size of work on the GIL is given up for it. Below, giving it up costs more
// than it gives.
#pragma once

#include <cstdint>

namespace pyop {

constexpr std::intptr_t kReleaseElements = 1 << 15;  // computed
constexpr std::intptr_t kReleaseForeign = 1 << 9;    // by code of which nothing is known; NumPy's own limit is near
constexpr std::intptr_t kReleaseBytes = 1 << 18;     // copied

}  // namespace pyop
