// array/contract/size_poly.h: compute a symbolic size (a Dim of Python) from the sizes of arrays (SizePoly).
#pragma once

#include <cstdint>
#include <vector>

#include "array/numpy.h"

namespace pyop {

// A sum of products of numbered symbols.
struct SizePoly {
    struct Term {
        npy_intp factor;
        std::vector<uint16_t> symbols;
    };
    std::vector<Term> terms;

    // False if the number is too large for a size.
    bool evaluate(const npy_intp* symbols, npy_intp& value) const;
};

// Reads a Dim. `names` is a tuple of the names of the symbols, in the order of their numbers. False if it is no
// polynomial of these (a division): then only Python can evaluate it. No error is set.
bool read_size_poly(PyObject* dim, PyObject* names, SizePoly& poly);

}  // namespace pyop
