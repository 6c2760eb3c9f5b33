// plan/steps/loop.cpp: run a loop as a native step: the program of its body runs again and again on one frame of
// slots, without Python in between (python/pyop/loops/node.py: Loop).
//
// What an iteration hands to the next is moved, not copied: its only reference stands in the slot that the body reads,
// so that the body writes over it where nobody reads it later. Results have memory of their own, whatever they show.
#include <algorithm>
#include <string>
#include <utility>

#include "array/call/lend.h"
#include "plan/execute.h"
#include "plan/steps/part.h"
#include "plan/steps/steps.h"
#include "plan/tape/loop_tape.h"
#include "runtime/errors.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

using RoundReferences = StackRefs<16>;

bool read_count(PyObject* o, npy_intp& count) {
    if (!is_exact_array(o)) return false;
    PyArrayObject* a = as_array(o);
    if (PyArray_NDIM(a) != 0 || PyArray_TYPE(a) != NPY_INTP || !PyArray_ISBEHAVED_RO(a)) return false;
    count = *static_cast<const npy_intp*>(PyArray_DATA(a));
    return true;
}

// The counter of an iteration, in the array of the last one if nobody has kept that.
int set_counter(PyObject*& counter, npy_intp i) {
    if (!counter || !uniquely_owned(counter)) {
        PyObject* made = PyArray_SimpleNew(0, nullptr, NPY_INTP);
        if (!made) return -1;
        Py_XSETREF(counter, made);
    }
    *static_cast<npy_intp*>(PyArray_DATA(as_array(counter))) = i;
    return 0;
}

class LoopStep final : public NativeStep {
  public:
    LoopStep(const Graph& g, uint32_t node) : NativeStep(Fallback::of_node(g, node)), caller_(g, node) {}

    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override {
        npy_intp i, end;
        if (!read_count(inputs[0], i) || !read_count(inputs[1], end)) return 0;
        const size_t n = body.program->feeds.size();
        for (size_t k = 1; k < n; ++k)
            if (!is_exact_array(inputs[k + 1])) return 0;
        if (stack_is_low()) {
            no_stack_left(" in a loop of a pyop plan");
            return -1;
        }
        RoundReferences feeds(n), slots(body.program->n_slots), next(n_carried);
        for (size_t k = 1; k < n; ++k)
            if (take(feeds[k], inputs, k, context) < 0) return -1;
        unsigned until_signals = kUntilSignals;
        npy_intp by_steps = 0;  // so many iterations that the tape could not do
        unsigned leaves = 0;
        for (; step > 0 ? i < end : i > end;) {
            if (tape_ && by_steps == 0 && leaves < kMostLeaves) {
                const LoopTape::Outcome done = tape_->run(feeds.data(), i, end);
                if (done == LoopTape::Outcome::Failed) {
                    note_iteration(i);
                    return -1;
                }
                if (done != LoopTape::Outcome::Left) break;
                ++leaves;
                by_steps = LoopTape::kStretch;
            }
            by_steps -= by_steps > 0;
            if (set_counter(feeds[0], i) < 0) return -1;
            const int goes_on = test.program ? holds(feeds.data()) : 1;
            if (goes_on == 0) break;
            if (goes_on < 0 || iterate(feeds, slots, next.data(), until_signals) < 0) {
                note_iteration(i);
                return -1;
            }
            if (__builtin_add_overflow(i, step, &i)) break;
        }
        return hand_over(feeds, inputs, results);
    }

    std::string describe(size_t) const override {
        const Program& p = *body.program;
        std::string text = "loop of " + std::to_string(p.instructions.size()) + " instructions";
        if (tape_) text += ", " + tape_->hot().text();
        return text + (has_python_ ? ", not all of them native" : "");
    }
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override {
        return tape.loop(*body.program, test.program, n_carried, step, inputs, results);
    }
    bool may_overwrite() const override { return true; }
    bool takes() const override { return true; }
    std::vector<std::pair<const Program*, size_t>> parts() const override { return {{body.program, n_carried}}; }
    const HotTape* hot() const override { return tape_ ? &tape_->hot() : nullptr; }

    // Reads from the program what a run need not find out.
    void prepare(bool with_tape) {
        const Program& p = *body.program;
        has_python_ = has_python(p);
        for (const Feed& feed : p.feeds) lends_ |= feed.lent_slot != kNoSlot;
        steals_.assign(n_carried, true);
        written_.assign(n_carried, false);
        for (size_t j = 0; j < n_carried; ++j) {
            const Operand o = p.outputs[j];
            for (size_t other = 0; other < n_carried; ++other)
                if (other != j && !p.outputs[other].constant() && p.outputs[other].index() == o.index())
                    steals_[j] = false;
            written_[j] = !o.constant() && overwrites(p, o.index());
        }
        if (with_tape && !lends_) tape_ = LoopTape::make(p, test.program, n_carried, step);
        for (size_t j = 0; tape_ && j < n_carried; ++j)
            if (tape_->writes(1 + j)) written_[j] = true;
    }

    Part body, test;  // the condition is empty for a loop that only counts
    size_t n_carried = 0;
    npy_intp step = 1;

  private:
    // Whether the last instruction that fills a slot may do so in the memory of its input.
    static bool overwrites(const Program& p, uint32_t slot) {
        for (size_t i = p.instructions.size(); i-- > 0;) {
            const Instruction& ins = p.instructions[i];
            for (Py_ssize_t k = 0; k < ins.callee.n_out; ++k)
                if (p.results[ins.first_result + static_cast<uint32_t>(k)] == slot) return ins.native && ins.in_place;
        }
        return false;
    }

    // What is carried into the first iteration is this loop's own where the body may write over it: a small array that
    // others have made never is (array/memory/recycle.h keeps a reference).
    int take(PyObject*& feed, PyObject* const* inputs, size_t k, const StepContext& context) const {
        PyObject* given = inputs[k + 1];
        const bool carried = k <= n_carried;
        PyObject** holder = carried && context.holders ? context.holders[k + 1] : nullptr;
        if (holder)
            feed = std::exchange(*holder, nullptr);
        else if (carried && written_[k - 1])
            feed = PyArray_NewCopy(as_array(given), NPY_KEEPORDER);
        else
            feed = Py_NewRef(given);
        return feed ? 0 : -1;
    }

    int holds(PyObject* const* feeds) const {
        PyObject* verdict = nullptr;
        if (execute(*test.program, test.graph, feeds, nullptr, &verdict) < 0) return -1;
        const Ref owned = Ref::steal(verdict);
        return PyObject_IsTrue(verdict);
    }

    int load(RoundReferences& feeds, RoundReferences& slots) const {
        const Program& p = *body.program;
        for (size_t k = 0; k < p.feeds.size(); ++k) {
            const Feed& feed = p.feeds[k];
            const bool moves = k >= 1 && k <= n_carried && feed.lent_slot == kNoSlot;
            if (feed.slot != kNoSlot) slots[feed.slot] = moves ? std::exchange(feeds[k], nullptr) : Py_NewRef(feeds[k]);
            if (feed.lent_slot != kNoSlot && lend_feed(p, feed, feeds[k], slots.data()) < 0) return -1;
        }
        return 0;
    }

    int unload(RoundReferences& feeds, RoundReferences& slots, PyObject** next) const {
        const Program& p = *body.program;
        if (lends_) {
            if (store_outputs(p, feeds.data(), slots.data(), next) < 0) return -1;
            for (size_t s = 0; s < slots.size(); ++s) Py_CLEAR(slots[s]);
            return 0;
        }
        for (size_t j = 0; j < n_carried; ++j) {
            const Operand o = p.outputs[j];
            if (o.constant())
                next[j] = as_object(lend_view_new(as_array(p.constants[o.index()].get())));
            else if (steals_[j])
                next[j] = std::exchange(slots[o.index()], nullptr);
            else
                next[j] = Py_NewRef(slots[o.index()]);
            if (!next[j]) return -1;
        }
        for (size_t j = 0; j < n_carried; ++j)
            if (!steals_[j]) Py_CLEAR(slots[p.outputs[j].index()]);
        return 0;
    }

    int iterate(RoundReferences& feeds, RoundReferences& slots, PyObject** next, unsigned& until_signals) const {
        if (load(feeds, slots) < 0) return -1;
        if (run_instructions(*body.program, graph_of(body.graph), nullptr, slots.data(), until_signals) < 0) return -1;
        if (unload(feeds, slots, next) < 0) return -1;
        for (size_t j = 0; j < n_carried; ++j) Py_XSETREF(feeds[1 + j], std::exchange(next[j], nullptr));
        if (body.program->instructions.empty() && --until_signals == 0) {
            until_signals = kUntilSignals;
            if (look_around() < 0) return -1;
        }
        return 0;
    }

    int hand_over(RoundReferences& feeds, PyObject* const* inputs, PyObject** results) const {
        for (size_t j = 0; j < n_carried; ++j) {
            PyObject* value = feeds[1 + j];
            bool seen = false;
            for (size_t k = 1; k < feeds.size(); ++k)
                seen |= (k != 1 + j && feeds[k] == value) || inputs[k + 1] == value;
            results[j] = own_result_new(value, seen || feeds[0] == value, has_python_);
            if (results[j]) continue;
            while (j-- > 0) Py_CLEAR(results[j]);
            return -1;
        }
        return 1;
    }

    PYOP_COLD void note_iteration(npy_intp i) const {
        const std::string text = "in the iteration " + std::to_string(i) + " of " + caller_.description();
        Ref note;
        {
            const SavedError pending;
            note = Ref::steal(PyUnicode_FromString(text.c_str()));
            if (!note) PyErr_Clear();
        }
        if (note) note_pending(note.get());
    }

    static constexpr unsigned kMostLeaves = 4;  // then it is a loop for the steps

    NodeCaller caller_;
    std::unique_ptr<LoopTape> tape_;  // of all that an iteration does; null if it is more than a tape can
    bool lends_ = false;
    bool has_python_ = false;
    std::vector<bool> steals_;   // by what is carried: it is the only output in its slot
    std::vector<bool> written_;  // the body may compute it in the memory of what it was
};

}  // namespace

int make_loop_step(const Rewrite& r, uint32_t i, std::unique_ptr<NativeStep>& step) {
    const PyNode& node = r.g.node_as<PyNode>(i);
    if (reinterpret_cast<PyObject*>(Py_TYPE(node.fn())) != up_calls.loop_class || node.form()) return 0;
    Ref parts = plans_of_parts(r, node.fn());
    if (!parts) return -1;
    PyObject *body, *test;
    Py_ssize_t n_carried, stride;
    if (!PyArg_ParseTuple(parts.get(), "OOnn", &body, &test, &n_carried, &stride)) return -1;
    auto made = std::make_unique<LoopStep>(r.g, i);
    if (!read_part(body, made->body) || !read_part(test, made->test) || !made->body.program) return 0;
    made->n_carried = static_cast<size_t>(n_carried);
    made->step = stride;
    if (made->body.program->concurrent || made->body.program->feeds.size() + 1 != node.inputs().size()) return 0;
    if (made->body.program->outputs.size() < made->n_carried || node.n_outputs() != made->n_carried) return 0;
    made->prepare(r.request.passes.has(Pass::Tape));
    step = std::move(made);
    return 0;
}

}  // namespace pyop
