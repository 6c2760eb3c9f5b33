// array/view/known_length.h: compile loops over very few elements for the commonest numbers of them.
#pragma once

#include <type_traits>

#include "array/numpy.h"

namespace pyop {

// Calls f with a constant that is n, for coordinates and colours, or else with 0.
template <class F>
void with_known_length(npy_intp n, F f) {
    switch (n) {
        case 2:
            return f(std::integral_constant<npy_intp, 2>{});
        case 3:
            return f(std::integral_constant<npy_intp, 3>{});
        case 4:
            return f(std::integral_constant<npy_intp, 4>{});
        default:
            return f(std::integral_constant<npy_intp, 0>{});
    }
}

}  // namespace pyop
