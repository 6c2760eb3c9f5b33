// plan/steps/branch.cpp: run one of two parts of a plan, by a truth that is known when it runs
// (python/pyop/loops/node.py: Branch).
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "plan/execute.h"
#include "plan/steps/part.h"
#include "plan/steps/steps.h"
#include "plan/tape/tape_builder.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

class BranchStep final : public NativeStep {
  public:
    using NativeStep::NativeStep;

    // The inputs are the truth, what the first part reads, and what the second reads.
    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override {
        const size_t first = yes.program->feeds.size(), n = first + no.program->feeds.size();
        for (size_t k = 0; k <= n; ++k)
            if (!is_exact_array(inputs[k])) return 0;
        PyArrayObject* truth = as_array(inputs[0]);
        if (PyArray_NDIM(truth) != 0 || PyArray_TYPE(truth) != NPY_BOOL) return 0;
        if (stack_is_low()) {
            no_stack_left(" in a branch of a pyop plan");
            return -1;
        }
        const bool is_true = *static_cast<const npy_bool*>(PyArray_DATA(truth));
        const Part& part = is_true ? yes : no;
        PyObject* const* feeds = inputs + 1 + (is_true ? 0 : first);
        const size_t n_out = part.program->outputs.size();
        StackRefs<8> made(n_out);
        if (compute(part, feeds, {inputs, n + 1}, context, made.data()) < 0) return -1;
        for (size_t j = 0; j < n_out; ++j) {
            bool seen = false;
            for (size_t k = 0; k < part.program->feeds.size(); ++k) seen |= feeds[k] == made[j];
            for (size_t k = 0; k < n_out; ++k) seen |= k != j && made[k] == made[j];
            results[j] = own_result_new(made[j], seen, is_true ? yes_python : no_python);
            if (results[j]) continue;
            while (j-- > 0) Py_CLEAR(results[j]);
            return -1;
        }
        return 1;
    }

    bool may_overwrite() const override { return true; }
    bool takes() const override { return true; }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        return tape.branch(inputs[0], *yes.program, *no.program, inputs + 1, results);
    }

    std::vector<std::pair<const Program*, size_t>> parts() const override {
        return {{yes.program, SIZE_MAX}, {no.program, SIZE_MAX}};
    }

    std::string describe(size_t) const override {
        return "branch of " + std::to_string(yes.program->instructions.size()) + " or " +
               std::to_string(no.program->instructions.size()) + " instructions";
    }

    Part yes, no;
    bool yes_python = false, no_python = false;

  private:
    // Runs a part. What nobody else holds or reads later becomes its own, to be written into or handed on.
    static int compute(const Part& part, PyObject* const* feeds, std::span<PyObject* const> inputs,
                       const StepContext& context, PyObject** made) {
        const Program& p = *part.program;
        StackRefs<64> slots(p.n_slots);
        for (size_t k = 0; k < p.feeds.size(); ++k) {
            const Feed& feed = p.feeds[k];
            if (feed.lent_slot != kNoSlot && lend_feed(p, feed, feeds[k], slots.data()) < 0) return -1;
            if (feed.slot == kNoSlot) continue;
            const bool once = std::count(feeds, feeds + p.feeds.size(), feeds[k]) == 1;
            PyObject** holder = once && feed.lent_slot == kNoSlot ? holder_of(feeds[k], inputs, context) : nullptr;
            slots[feed.slot] = holder ? std::exchange(*holder, nullptr) : Py_NewRef(feeds[k]);
        }
        unsigned until_signals = kUntilSignals;
        if (run_instructions(p, graph_of(part.graph), nullptr, slots.data(), until_signals) < 0) return -1;
        return store_outputs(p, feeds, slots.data(), made);
    }

    // Where an array may be taken from: both parts may read it, and only one of them runs.
    static PyObject** holder_of(PyObject* array, std::span<PyObject* const> inputs, const StepContext& context) {
        for (size_t k = 0; context.holders && k < inputs.size(); ++k)
            if (inputs[k] == array && context.holders[k]) return context.holders[k];
        return nullptr;
    }
};

}  // namespace

int make_branch_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (reinterpret_cast<PyObject*>(Py_TYPE(node.fn())) != up_calls.branch_class || node.form()) return 0;
    Ref parts = plans_of_parts(r, node.fn());
    if (!parts) return -1;
    PyObject *yes, *no;
    if (!PyArg_ParseTuple(parts.get(), "OO", &yes, &no)) return -1;
    auto made = std::make_unique<BranchStep>(Fallback::of_node(r.g, i));
    if (!read_part(yes, made->yes) || !read_part(no, made->no) || !made->yes.program || !made->no.program) return 0;
    const Program &first = *made->yes.program, &second = *made->no.program;
    if (1 + first.feeds.size() + second.feeds.size() != node.inputs().size()) return 0;
    if (first.outputs.size() != node.n_outputs() || second.outputs.size() != node.n_outputs()) return 0;
    made->yes_python = has_python(first);
    made->no_python = has_python(second);
    step = std::move(made);
    return 0;
}

}  // namespace pyop
