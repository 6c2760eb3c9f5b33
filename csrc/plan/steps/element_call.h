// plan/steps/element_call.h: describe an operation on single numbers: how each operand is converted to what the
// operation computes in, and what computes it (ElementCall).
//
//     ufuncs and conversions called on numbers ┐                    ┌ an operation of the tape
//     operators of NumPy's scalars             ├─► casts ─► one of ─┼ scalar arithmetic (element_arithmetic.h)
//     the same with Python numbers among them  ┘                    └ NumPy's own inner loop, for one element
//
// The bits and the floating-point flags are NumPy's; where NumPy would warn or raise for another reason, what computes
// it answers false. So there is one way for every dtype and every ufunc.
#pragma once

#include <optional>

#include "graph/passes/rewrite.h"
#include "plan/group/elementwise.h"
#include "plan/steps/element_arithmetic.h"

namespace pyop {

struct ElementOperand {
    int32_t input = -1;  // -1: `constant`, as `want`
    PyArray_Descr* have = nullptr;  // NumPy's own, which live for ever
    PyArray_Descr* want = nullptr;
    PyArray_Descr* first = nullptr;  // what a Python int becomes before: it must fit; null: nothing else
    TapeCall::Function* fit = nullptr;  // makes that
    TapeCall::Function* cast = nullptr;  // null: they are the same
    bool as_array = false;  // the cast is that of arrays, for which a tape may have an operation
    TapeCell constant[2] = {};
};

struct ElementCall {
    enum How { Cast, Where, Quotient, Arithmetic, Loop };  // Quotient: divmod of integers

    How how = Loop;
    FixedVector<ElementOperand, StridedLoop::kMaxOperands> operands;
    FixedVector<PyArray_Descr*, StridedLoop::kMaxOperands> results;
    ElementArithmetic arithmetic, rest;  // `rest`: the second result of a Quotient
    // Of a Loop: and its kernel, if a tape may have an operation that does the same.
    std::shared_ptr<const StridedLoop> loop;
    Operation operation = Operation::None;
    Element element = Element::None;
    bool may_fail = false;  // with a Python error
    bool of_scalar = false;  // of one, that is a scalar to NumPy, and not an array of no dimension
    std::string name;
};

// The call of a node that computes numbers of numbers. Empty if it is none, or NumPy itself must run it: `failed` if
// with an error set.
std::optional<ElementCall> read_element_call(const Rewrite& r, uint32_t node, bool& failed);

}  // namespace pyop
