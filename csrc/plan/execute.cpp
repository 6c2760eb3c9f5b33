// plan/execute.cpp: loop over the instructions of a program, and lend their arguments.
#include "plan/execute.h"

#include <memory>

#include "array/call/plain_call.h"
#include "array/loop/ufunc_errors.h"
#include "plan/lent.h"
#include "plan/profiled.h"
#include "plan/tape/straight_tape.h"
#include "plan/tape/tape.h"
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

int run(const Instruction& ins, const Operand* operands, const Graph& g, PyObject* const* arguments,
        const StepContext& context, PyObject** results) {
    if (ins.native) {
        const int done = ins.native->run(arguments, results, context);
        if (done != 0) return done > 0 ? 0 : -1;
        if (PYOP_UNLIKELY(Trial::running())) return Trial::leave();
        return ins.native->call(g, arguments, results);
    }
    Callee callee = ins.callee;
    callee.private_inputs = context.dying;
    if (PYOP_LIKELY(!ins.anew))
        return checked_call(callee, arguments, ins.n_inputs, results, nullptr, NodeCaller(g, ins.node));
    LentAnew lent(ins.n_inputs);
    if (lent.lend(operands, arguments) < 0) return -1;
    return checked_call(callee, lent.arguments(), ins.n_inputs, results, nullptr, NodeCaller(g, ins.node));
}

// Looks for the parts of arrays that results are written into, if nobody else can see them: an array has a reference
// from its slot, and from views that are read for the last time. They hold no reference to the arrays, since the write
// is to find those unshared; until then the slots keep them.
int take_part_targets(const Program& p, const Instruction& ins, PyObject* const* slots, PyObject* const* arguments,
                      PyObject** parts) {
    const Operand* const operands = p.operands.data() + ins.first_operand;
    for (uint32_t t = 0; t < ins.n_part_targets; ++t) {
        const PartTarget& target = p.part_targets[ins.first_part_target + t];
        PyObject* const base = slots[target.base];
        if (!is_exact_array(base) || !PyArray_CHKFLAGS(as_array(base), NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEABLE))
            continue;
        Py_ssize_t seen = 1;
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            seen += operands[k].last_use() && is_exact_array(arguments[k]) && uniquely_owned(arguments[k]) &&
                    PyArray_BASE(as_array(arguments[k])) == base;
        if (references_of(base) != seen) continue;
        const Instruction& write = p.instructions[target.instruction];
        const Operand* const of = p.operands.data() + write.first_operand;
        Pointers inputs(write.n_inputs);
        bool there = true;
        for (uint32_t k = 0; k < write.n_inputs; ++k) {
            inputs[k] = of[k].constant() ? p.constants[of[k].index()].get() : slots[of[k].index()];
            there &= inputs[k] != nullptr || k == static_cast<uint32_t>(write.native->stored_input());
        }
        if (!there) continue;
        parts[target.result] = write.native->part_new(inputs.data());
        if (!parts[target.result] && PyErr_Occurred()) return -1;
    }
    return 0;
}

PYOP_COLD int run_plain_profiled(const Program& p, const Graph& g, uint32_t i, PyObject* const* arguments,
                                 PyObject** result) {
    const Instruction& ins = p.instructions[i];
    return run_profiled(p, i, arguments, result, [&] {
        return checked_call_plain(ins.callee.fn, *ins.callee.contract, arguments, ins.n_inputs, result,
                                  NodeCaller(g, ins.node));
    });
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
    if (targets) {
        context.in_callers_memory = targets_of(p, i, targets, wanted.data());
        context.targets = wanted.data();
    }
    StackRefs<4> parts(ins.n_part_targets ? results.size() : 0);
    if (ins.n_part_targets) {
        if (take_part_targets(p, ins, slots, arguments.data(), parts.data()) < 0) return -1;
        for (size_t k = 0; k < wanted.size(); ++k)
            if (wanted[k]) Py_XSETREF(parts[k], Py_NewRef(wanted[k]));
        context.targets = parts.data();
    }
    for (uint32_t k = 0; k < ins.n_inputs; ++k) long_one |= is_long(arguments[k]);
    StackArray<PyObject**, 16> holders(ins.takes && context.dying && !profiling() ? ins.n_inputs : 0);
    if (PYOP_UNLIKELY(holders.size())) {
        for (uint32_t k = 0; k < ins.n_inputs; ++k)
            holders[k] = context.dying >> k & 1 ? &slots[operands[k].index()] : nullptr;
        context.holders = holders.data();
    }
    if (run_instruction(p, i, g, arguments.data(), context, results.data()) < 0) return -1;
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

int lend_feed(const Program& p, const Feed& feed, PyObject* array, PyObject** slots) {
    // What several functions get is a view even where it is read-only: they must not reshape the caller's array.
    const Loan loan = feed.lent_anew ? Loan{as_object(lend_view_new(as_array(array))), true} : lend(as_array(array));
    if (!loan.object) return -1;
    slots[feed.lent_slot] = loan.owned ? loan.object : Py_NewRef(loan.object);
    if (feed.lent_anew && !p.concurrent) slots[feed.lent_slot + 1] = Py_NewRef(array);
    return 0;
}

int load_feeds(const Program& p, PyObject* const* feeds, PyObject** slots) {
    for (size_t k = 0; k < p.feeds.size(); ++k) {
        const Feed& feed = p.feeds[k];
        if (feed.slot != kNoSlot) slots[feed.slot] = Py_NewRef(feeds[k]);
        if (feed.lent_slot != kNoSlot && lend_feed(p, feed, feeds[k], slots) < 0) return -1;
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

int run_instructions(const Program& p, const Graph& g, PyObject* const* targets, PyObject** slots,
                     unsigned& until_signals) {
    const Instruction* const instructions = p.instructions.data();
    const Operand* const all_operands = p.operands.data();
    const Ref* constants = p.constants.data();
    const auto n_instructions = static_cast<uint32_t>(p.instructions.size());
    for (uint32_t i = 0; i < n_instructions; ++i) {
        const Instruction& ins = instructions[i];
        // Python functions look at signals themselves, builtins do not.
        if (PYOP_UNLIKELY(--until_signals == 0)) {
            until_signals = kUntilSignals;
            if (look_around() < 0) return -1;  // a loop of short steps would keep other threads waiting
        }
        if (PYOP_LIKELY(ins.plain)) {
            const Operand* operands = all_operands + ins.first_operand;
            PyObject* arguments[kPlainArity];
            if (PYOP_LIKELY(!ins.anew)) {
                for (uint32_t k = 0; k < ins.n_inputs; ++k) {
                    const Operand o = operands[k];
                    arguments[k] = o.constant() ? constants[o.index()].get() : slots[o.index()];
                }
            } else {
                for (uint32_t k = 0; k < ins.n_inputs; ++k) {
                    const Operand o = operands[k];
                    arguments[k] = o.constant() ? constants[o.index()].get() : slots[o.index()];
                    if (!o.anew() || o.constant()) continue;
                    arguments[k] = shared_argument(slots + o.index());
                    if (PYOP_UNLIKELY(!arguments[k])) return -1;
                }
            }
            // A value computed by an undeclared function may be anything; the general path converts it.
            bool arrays = true;
            for (uint32_t k = 0; k < ins.n_inputs; ++k) arrays &= is_exact_array(arguments[k]);
            PyObject* result;
            if (PYOP_UNLIKELY(ins.anew_constant && arrays) && own_constants(ins, operands, arguments) < 0) return -1;
            const auto caller = [&] { return NodeCaller(g, ins.node); };
            int done = 1;
            if (PYOP_UNLIKELY(!arrays))
                done = 1;
            else if (PYOP_UNLIKELY(profiling()))
                done = run_plain_profiled(p, g, i, arguments, &result);
            else
                done = call_plain(ins.callee.fn, *ins.callee.contract, arguments, ins.n_inputs, &result, caller);
            if (PYOP_UNLIKELY(ins.anew) && done == 0 && !own_result(ins, operands, slots, arguments, &result))
                done = -1;
            if (PYOP_UNLIKELY(ins.anew_constant && arrays)) give_back_constants(ins, operands, arguments);
            if (PYOP_LIKELY(done == 0)) {
                const uint32_t slot = p.results[ins.first_result];
                if (PYOP_LIKELY(slot != kNoSlot))
                    slots[slot] = result;
                else
                    Py_DECREF(result);
                for (uint32_t k = 0; ins.releases && k < ins.n_inputs; ++k)
                    if (operands[k].last_use()) Py_CLEAR(slots[operands[k].index()]);
                continue;
            }
            if (done < 0) return -1;
        } else if (PYOP_UNLIKELY(ins.anew) && renew_shared(p, ins, slots) < 0) {
            return -1;
        }
        if (PYOP_UNLIKELY(ins.tape != nullptr) && !profiling()) {
            const int done = ins.tape->run(p, slots);
            if (done < 0) return -1;
            if (done > 0) {
                i += ins.tape->span() - 1;
                continue;
            }
        }
        bool long_one = false;
        if (step(p, g, i, slots, targets, long_one) < 0) return -1;
        if (long_one) until_signals = 1;
    }
    return 0;
}

int execute(const Program& p, PyObject* graph, PyObject* const* feeds, PyObject* const* targets, PyObject** outputs) {
    Frame frame(p.n_slots);
    unsigned until_signals = kUntilSignals;
    if (load_feeds(p, feeds, frame.data()) < 0 ||
        run_instructions(p, graph_of(graph), targets, frame.data(), until_signals) < 0)
        return -1;
    return store_outputs(p, feeds, frame.data(), outputs);
}

}  // namespace pyop
