// plan/execute.cpp: the loop over the instructions of a program, and the arguments it lends.
#include "plan/execute.h"

#include <memory>

#include "array/call/lend.h"
#include "plan/profiled.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// An instruction on that much may take so long that signals are looked at when it is done.
constexpr npy_intp kLongBytes = 1 << 18;

PYOP_INLINE bool is_long(PyObject* argument) {
    if (!is_exact_array(argument)) return false;
    PyArrayObject* a = as_array(argument);
    npy_intp bytes = PyArray_ITEMSIZE(a);
    for (int k = 0; k < PyArray_NDIM(a); ++k) bytes *= PyArray_DIM(a, k);
    return bytes >= kLongBytes;
}

// The slots of one execution.
using Frame = StackRefs<64>;

// Arguments whose memory nobody can see any more: their only reference is the slot that is about to be released.
uint64_t dying_inputs(const Instruction& ins, const Operand* operands, PyObject* const* arguments) {
    uint64_t mask = 0;
    for (uint32_t k = 0; k < ins.n_inputs && k < 64; ++k) {
        if (operands[k].last_use() && holds_own_memory(arguments[k])) mask |= uint64_t{1} << k;
    }
    return mask;
}

// Pointers for one instruction.
using Pointers = StackArray<PyObject*, 16>;

// A view of an argument for one call: of what the argument's own view shows, so that the caller gets that if the
// function returns it. Null if there is none to be made, or with an error set.
PyObject* view_anew(const Operand o, PyObject* argument) {
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

int run(const Instruction& ins, const Operand* operands, const Graph& g, PyObject* const* arguments,
        const StepContext& context, PyObject** results) {
    if (ins.native) {
        const int done = ins.native->run(arguments, results, context);
        if (done != 0) return done > 0 ? 0 : -1;
        return ins.native->fallback().call(g, arguments, results);
    }
    Callee callee = ins.callee;
    callee.private_inputs = context.dying;
    if (PYOP_LIKELY(!ins.anew))
        return checked_call(callee, arguments, ins.n_inputs, results, nullptr, NodeCaller(g, ins.node));
    LentAnew lent(ins.n_inputs);
    if (lent.lend(operands, arguments) < 0) return -1;
    return checked_call(callee, lent.arguments(), ins.n_inputs, results, nullptr, NodeCaller(g, ins.node));
}

// The feed whose view for functions is in a slot.
PYOP_COLD PyArrayObject* feed_lent_in(const Program& p, uint32_t slot, PyObject* const* feeds) {
    for (size_t k = 0; k < p.feeds.size(); ++k)
        if (p.feeds[k].lent_slot == slot) return as_array(feeds[k]);
    return nullptr;
}

// In one thread, an argument that several functions are lent has one view for all of them, as long as it shows what it
// did: a function may have assigned its shape, in its own call or, if it kept it, in a later one. Then those after it
// get another.
int renew_shared(const Program& p, const Instruction& ins, PyObject* const* feeds, PyObject** slots) {
    const Operand* operands = p.operands.data() + ins.first_operand;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        const Operand o = operands[k];
        if (!o.anew() || o.constant()) continue;
        PyObject*& view = slots[o.index()];
        PyObject* base = PyArray_BASE(as_array(view));
        if (PYOP_LIKELY(base && is_exact_array(base) && lend_unchanged(as_array(view), as_array(base)) &&
                        !PyArray_ISWRITEABLE(as_array(view))))
            continue;
        PyArrayObject* lent = lend_view_new(feed_lent_in(p, o.index(), feeds));
        if (!lent) return -1;
        Py_SETREF(view, as_object(lent));
    }
    return 0;
}

// A constant is shared by threads: each call has a view of its own. Returns 0, or -1 with the error set and none made.
int own_constants(const Instruction& ins, const Operand* operands, PyObject** arguments) {
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

void give_back_constants(const Instruction& ins, const Operand* operands, PyObject* const* arguments) {
    for (uint32_t k = 0; k < ins.n_inputs; ++k)
        if (operands[k].anew() && operands[k].constant()) lend_return_steal(as_array(arguments[k]));
}

// A function that returned the view it shares with others: its result must not change with what they do to that. What
// only the caller reads becomes the argument at once (`store_outputs` has the reason). False with the error set.
bool own_result(const Program& p, uint32_t i, PyObject* const* arguments, PyObject** result) {
    const Instruction& ins = p.instructions[i];
    const Operand* operands = p.operands.data() + ins.first_operand;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) {
        if (*result != arguments[k] || !operands[k].anew() || operands[k].constant()) continue;
        PyObject* base = PyArray_BASE(as_array(*result));
        if (!base || !is_exact_array(base) || !lend_unchanged(as_array(*result), as_array(base))) return true;
        const bool leaves = p.output_of_result[ins.first_result] >= 0;
        PyObject* own = leaves ? Py_NewRef(base) : as_object(lend_view_new(as_array(base)));
        Py_SETREF(*result, own);
        return own != nullptr;
    }
    return true;
}

// The general instruction; the plain one is inlined into the loop of execute().
int step(const Program& p, const Graph& g, uint32_t i, PyObject** slots, PyObject* const* targets, bool& long_one) {
    const Instruction& ins = p.instructions[i];
    const Operand* operands = p.operands.data() + ins.first_operand;
    Pointers arguments(ins.n_inputs), results(static_cast<size_t>(ins.callee.n_out));
    std::fill_n(results.data(), ins.callee.n_out, nullptr);
    for (uint32_t k = 0; k < ins.n_inputs; ++k)
        arguments[k] = operands[k].constant() ? p.constants[operands[k].index()].get() : slots[operands[k].index()];
    StepContext context;
    Pointers wanted(targets ? results.size() : 0);
    if (ins.in_place) context.dying = dying_inputs(ins, operands, arguments.data());
    for (size_t k = 0; k < wanted.size(); ++k) {
        const int32_t output = p.output_of_result[ins.first_result + k];
        wanted[k] = output < 0 ? nullptr : targets[output];
    }
    if (targets) context.targets = wanted.data();
    if (run_instruction(p, i, g, arguments.data(), context, results.data()) < 0) return -1;
    for (uint32_t k = 0; k < ins.n_inputs; ++k) long_one |= is_long(arguments[k]);
    for (uint32_t k = 0; k < static_cast<uint32_t>(ins.callee.n_out); ++k) {
        const uint32_t slot = p.results[ins.first_result + k];
        if (slot == kNoSlot)
            Py_DECREF(results[k]);
        else
            slots[slot] = results[k];
    }
    for (uint32_t k = 0; k < ins.n_inputs; ++k)
        if (operands[k].last_use()) Py_CLEAR(slots[operands[k].index()]);
    return 0;
}

}  // namespace

int run_instruction(const Program& p, uint32_t i, const Graph& g, PyObject* const* arguments,
                    const StepContext& context, PyObject** results) {
    const Instruction& ins = p.instructions[i];
    const Operand* operands = p.operands.data() + ins.first_operand;
    if (profiling())
        return run_profiled(p, i, arguments, results,
                            [&] { return run(ins, operands, g, arguments, context, results); });
    return run(ins, operands, g, arguments, context, results);
}

int load_feeds(const Program& p, PyObject* const* feeds, PyObject** slots) {
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        const Feed& feed = p.feeds[k];
        if (feed.slot != kNoSlot) slots[feed.slot] = Py_NewRef(feeds[k]);
        if (feed.lent_slot == kNoSlot) continue;
        // What several functions get is a view even where it is read-only: they must not reshape the caller's array.
        const Loan loan =
            feed.lent_anew ? Loan{as_object(lend_view_new(as_array(feeds[k]))), true} : lend(as_array(feeds[k]));
        if (!loan.object) return -1;
        slots[feed.lent_slot] = loan.owned ? loan.object : Py_NewRef(loan.object);
    }
    return 0;
}

int store_outputs(const Program& p, PyObject* const* feeds, PyObject* const* slots, PyObject** outputs) {
    for (size_t i = 0; i < p.outputs.size(); ++i) {
        const Operand o = p.outputs[i];
        if (o.constant()) {
            PyObject* constant = p.constants[o.index()].get();
            outputs[i] = is_exact_array(constant) ? as_object(lend_view_new(as_array(constant))) : Py_NewRef(constant);
            if (outputs[i]) continue;
            while (i-- > 0) Py_CLEAR(outputs[i]);
            return -1;
        }
        PyObject* value = slots[o.index()];
        // A function that returned the view of an argument: the caller gets the argument, as it would from
        // a direct call. The view is recognised by its base, since its slot may be in use again.
        if (is_exact_array(value) && !PyArray_CHKFLAGS(as_array(value), NPY_ARRAY_WRITEABLE)) {
            for (size_t k = 0; k < p.feeds.size(); ++k) {
                if (p.feeds[k].lent_slot == kNoSlot || PyArray_BASE(as_array(value)) != feeds[k]) continue;
                PyArrayObject *view = as_array(value), *whole = as_array(feeds[k]);
                if (PyArray_DATA(view) == PyArray_DATA(whole) && PyArray_SAMESHAPE(view, whole) &&
                    PyArray_DESCR(view) == PyArray_DESCR(whole) &&
                    PyArray_CompareLists(PyArray_STRIDES(view), PyArray_STRIDES(whole), PyArray_NDIM(view)))
                    value = feeds[k];
            }
        }
        outputs[i] = Py_NewRef(value);
    }
    return 0;
}

int execute(const Program& p, PyObject* graph, PyObject* const* feeds, PyObject* const* targets, PyObject** outputs) {
    const Graph& g = graph_of(graph);
    Frame frame(p.n_slots);
    PyObject** slots = frame.data();
    if (load_feeds(p, feeds, slots) < 0) return -1;
    const Operand* all_operands = p.operands.data();
    const Ref* constants = p.constants.data();
    unsigned until_signals = 1024;
    const auto n_instructions = static_cast<uint32_t>(p.instructions.size());
    for (uint32_t i = 0; i < n_instructions; ++i) {
        const Instruction& ins = p.instructions[i];
        // Python functions look at signals themselves, builtins do not.
        if (PYOP_UNLIKELY(--until_signals == 0)) {
            until_signals = 1024;
            if (PyErr_CheckSignals() < 0) return -1;
        }
        if (PYOP_UNLIKELY(ins.anew) && renew_shared(p, ins, feeds, slots) < 0) return -1;
        if (PYOP_LIKELY(ins.plain)) {
            const Operand* operands = all_operands + ins.first_operand;
            PyObject* arguments[kPlainArity];
            for (uint32_t k = 0; k < ins.n_inputs; ++k) {
                const Operand o = operands[k];
                arguments[k] = o.constant() ? constants[o.index()].get() : slots[o.index()];
            }
            // A value computed by an undeclared function may be anything; the general path converts it.
            bool arrays = true;
            for (uint32_t k = 0; k < ins.n_inputs; ++k) arrays &= is_exact_array(arguments[k]);
            PyObject* result;
            if (PYOP_UNLIKELY(ins.anew_constant && arrays) && own_constants(ins, operands, arguments) < 0) return -1;
            const auto call = [&] {
                return checked_call_plain(ins.callee.fn, *ins.callee.contract, arguments, ins.n_inputs, &result,
                                          NodeCaller(g, ins.node));
            };
            int done = 1;
            if (PYOP_LIKELY(arrays)) done = profiling() ? run_profiled(p, i, arguments, &result, call) : call();
            if (PYOP_UNLIKELY(ins.anew) && done == 0 && !own_result(p, i, arguments, &result)) done = -1;
            if (PYOP_UNLIKELY(ins.anew_constant && arrays)) give_back_constants(ins, operands, arguments);
            if (PYOP_LIKELY(done == 0)) {
                const uint32_t slot = p.results[ins.first_result];
                if (PYOP_LIKELY(slot != kNoSlot))
                    slots[slot] = result;
                else
                    Py_DECREF(result);
                for (uint32_t k = 0; k < ins.n_inputs; ++k)
                    if (operands[k].last_use()) Py_CLEAR(slots[operands[k].index()]);
                continue;
            }
            if (done < 0) return -1;
        }
        bool long_one = false;
        if (step(p, g, i, slots, targets, long_one) < 0) return -1;
        if (long_one) until_signals = 1;
    }
    return store_outputs(p, feeds, slots, outputs);
}

}  // namespace pyop
