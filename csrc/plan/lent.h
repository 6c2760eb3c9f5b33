// plan/lent.h: lend functions the views that others are lent too.
//
// In one thread, an argument of the plan that several functions are lent has one view for all of them, as long as it
// shows what it did: a function may have assigned its shape, in its own call or, if it kept it, in a later one. Then
// those after it get another. It is compared before each call, and after those that return it.
#pragma once

#include "array/call/lend.h"
#include "plan/program.h"
#include "runtime/stack_array.h"

namespace pyop {

// Pointers for one instruction.
using Pointers = StackArray<PyObject*, 16>;

// A view of an argument for one call: of what the argument's own view shows, so that the caller gets that if the
// function returns it. Null if there is none to be made, or with an error set.
inline PyObject* view_anew(const Operand o, PyObject* argument) {
    if (!is_exact_array(argument)) return nullptr;
    PyObject* array = o.constant() ? argument : PyArray_BASE(as_array(argument));
    return array && is_exact_array(array) ? as_object(lend_view_new(as_array(array))) : nullptr;
}

// The arguments of one call, some of them as views that are made for it.
class LentAnew {
  public:
    LentAnew(uint32_t n) : arguments_(n), views_(n) { std::fill_n(views_.data(), n, nullptr); }
    ~LentAnew() {
        for (size_t k = 0; k < views_.size(); ++k)
            if (views_[k]) lend_return_steal(as_array(views_[k]));
    }
    LentAnew(const LentAnew&) = delete;
    LentAnew& operator=(const LentAnew&) = delete;

    int lend(const Operand* operands, PyObject* const* arguments) {
        for (size_t k = 0; k < views_.size(); ++k) {
            arguments_[k] = arguments[k];
            if (!operands[k].anew()) continue;
            views_[k] = view_anew(operands[k], arguments[k]);
            if (views_[k])
                arguments_[k] = views_[k];
            else if (PyErr_Occurred())
                return -1;
        }
        return 0;
    }
    PyObject* const* arguments() { return arguments_.data(); }

  private:
    Pointers arguments_, views_;
};

// The view in a slot (behind which is the argument itself), if it is what a function may be lent, or another in its
// place. Null with the error set.
PYOP_COLD inline PyObject* renew(PyObject** slot) {
    PyArrayObject* lent = lend_view_new(as_array(slot[1]));
    if (lent) Py_SETREF(slot[0], as_object(lent));
    return as_object(lent);
}

PYOP_INLINE PyObject* shared_argument(PyObject** slot) {
    PyArrayObject* view = as_array(slot[0]);
    if (PYOP_LIKELY(lend_unchanged(view, as_array(slot[1])) && !PyArray_ISWRITEABLE(view))) return slot[0];
    return renew(slot);
}

// All that an instruction reads are as lent, or made anew. Returns 0, or -1 with the error set.
inline int renew_shared(const Program& p, const Instruction& ins, PyObject** slots) {
    const Operand* operands = p.operands.data() + ins.first_operand;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        const Operand o = operands[k];
        if (!o.anew() || o.constant()) continue;
        if (!shared_argument(slots + o.index())) return -1;
    }
    return 0;
}

// A constant is shared by threads: each call has a view of its own. Returns 0, or -1 with the error set and none made.
inline int own_constants(const Instruction& ins, const Operand* operands, PyObject** arguments) {
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        if (!operands[k].anew() || !operands[k].constant()) continue;
        PyArrayObject* view = lend_view_new(as_array(arguments[k]));
        if (!view) {
            while (k-- > 0)
                if (operands[k].anew() && operands[k].constant()) lend_return_steal(as_array(arguments[k]));
            return -1;
        }
        arguments[k] = as_object(view);
    }
    return 0;
}

inline void give_back_constants(const Instruction& ins, const Operand* operands, PyObject* const* arguments) {
    for (uint32_t k = 0; k < ins.n_inputs; ++k)
        if (operands[k].anew() && operands[k].constant()) lend_return_steal(as_array(arguments[k]));
}

// A function that returned the view it shares with others: its result must not change with what they do to that. What
// only the caller reads becomes the argument at once (`store_outputs` has the reason). False with the error set.
PYOP_INLINE bool own_result(const Instruction& ins, const Operand* operands, PyObject* const* slots,
                            PyObject* const* arguments, PyObject** result) {
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        if (*result != arguments[k] || !operands[k].anew() || operands[k].constant()) continue;
        PyObject* whole = slots[operands[k].index() + 1];
        if (!lend_unchanged(as_array(*result), as_array(whole))) return true;
        PyObject* own = ins.leaves ? Py_NewRef(whole) : as_object(lend_view_new(as_array(whole)));
        Py_SETREF(*result, own);
        return own != nullptr;
    }
    return true;
}

}  // namespace pyop
