// plan/steps/element_arithmetic.h: compute the arithmetic of NumPy's scalars where it is not the loop of the ufunc
// (array/protocol/scalar_operator.h), for one element.
#pragma once

#include <string_view>

#include "plan/tape/tape.h"

namespace pyop {

// What computes an operation of one or two elements of a dtype. Overflow, of integers as well, is in the floating-point
// flags; where integers are divided by zero, or NumPy would raise, it answers false or leaves.
struct ElementArithmetic {
    TapeCall::Function* function = nullptr;
    TapeOp op = TapeOp::Move;  // of a tape, which does the same; Move: there is none

    bool found() const { return function != nullptr; }
};

// By the name of the ufunc, of two scalars of the dtype. What NumPy's loop gives as well is not here.
ElementArithmetic find_scalar_arithmetic(std::string_view ufunc, int type_num);

// What is done to integers by loops that may raise a Python error.
ElementArithmetic find_integer_arithmetic(std::string_view ufunc, int type_num);

}  // namespace pyop
