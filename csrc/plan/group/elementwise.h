// plan/group/elementwise.h: tell which nodes compute element by element, and with what.
#pragma once

#include <memory>
#include <vector>

#include "array/loop/strided_loop.h"
#include "graph/argument.h"
#include "graph/passes/rewrite.h"
#include "kernels/kernel.h"
#include "runtime/fixed_vector.h"

namespace pyop {

struct ElementwiseCall {
    // pyop's own kernel for contiguous operands, where there is one; and what it is, for superinstructions.
    Kernel kernel = nullptr;
    Operation operation = Operation::None;
    Element element = Element::None;
    // NumPy's loop; null for np.where and astype, which have none.
    std::shared_ptr<const StridedLoop> loop;
    // What the operands are computed in, inputs first: NumPy's own dtypes, which live for ever.
    FixedVector<PyArray_Descr*, StridedLoop::kMaxOperands> dtypes;
    size_t n_inputs = 0;
    FixedVector<Argument, StridedLoop::kMaxOperands> arguments;  // by input
    bool in_place = false;  // augmented assignment: the result lies as the first operand does
    bool safe = false;  // a loop that cannot fail with a Python error
    std::string name;  // as NumPy's warnings have it
};

// The call of a node whose shape and dtypes are known; null if it is not elementwise or NumPy itself must run it.
// 0, or -1 with an error set.
int elementwise_call(const Rewrite& r, uint32_t node, std::shared_ptr<const ElementwiseCall>& call);

// A cheap test that spares most graphs the rest.
bool may_be_elementwise(PyObject* fn);

bool is_numpy_round(PyObject* fn);
// np.where and ndarray.astype; borrowed, for the life of the process. Null with an error set.
PyObject* numpy_where();
PyObject* ndarray_astype();

// pyop's name for a type of elements; None if kernels do not know it.
Element element_of(PyArray_Descr* dtype);

}  // namespace pyop
