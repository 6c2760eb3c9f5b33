// plan/tape/find_straight.cpp: find which instructions of a program become one tape: as many as can be recorded one
// behind the other.
#include <algorithm>
#include <unordered_map>

#include "plan/steps/guard_step.h"
#include "plan/tape/straight_tape.h"

namespace pyop {

namespace {

constexpr uint32_t kFewest = 2;  // instructions that are worth a tape

}  // namespace

// One run of instructions in the making.
class StraightRecorder {
  public:
    using Specs = std::vector<const ValueSpec*>;  // by slot: what it holds

    StraightRecorder(const Rewrite& r, const Program& p, const Specs& specs) : r_(r), p_(p), specs_(specs) {}

    // Writes one more instruction down; false if it cannot be one of these: then nothing has changed.
    bool add(const Instruction& ins) {
        const TapeBuilder::Mark mark = builder_.mark();
        const size_t n_inputs = inputs_.size(), n_stores = builder_.n_stores();
        std::vector<TapeValue> given, results(static_cast<size_t>(ins.callee.n_out));
        for (uint32_t k = 0; k < ins.n_inputs; ++k) given.push_back(read(p_.operands[ins.first_operand + k]));
        if (ins.native->record(builder_, given.data(), results.data()) && !builder_.full() &&
            fits(ins, results, builder_.n_stores() != n_stores)) {
            settle(ins, results);
            guards_ |= is_guard(r_.g.node(ins.node));
            ++span_;
            return true;
        }
        builder_.reset(mark);
        for (size_t k = n_inputs; k < inputs_.size(); ++k)
            if (!inputs_[k].from.constant()) now_.erase(inputs_[k].from.index());
        inputs_.resize(n_inputs);
        return false;
    }

    uint32_t span() const { return span_; }

    std::unique_ptr<StraightTape> finish() {
        auto made = std::make_unique<StraightTape>();
        made->span_ = span_;
        made->inputs_ = std::move(inputs_);
        for (const auto& [slot, held] : now_)
            if (!held.input) made->outputs_.push_back({slot, held.value});
        for (StraightTape::Input& input : made->inputs_) {
            const bool array = input.value.kind == TapeValue::Array;
            input.written = array && builder_.was_written(input.value);
            const bool released = !input.from.constant() &&
                                  std::find(released_.begin(), released_.end(), input.from.index()) != released_.end();
            input.own = released;
            for (size_t k = 0; array && k < made->outputs_.size(); ++k)
                if (made->outputs_[k].value.kind == TapeValue::Array &&
                    made->outputs_[k].value.memory == input.value.memory)
                    input.moves_to = static_cast<int32_t>(k);
        }
        made->released_ = std::move(released_);
        made->guards_ = guards_;
        made->recyclers_.resize(made->outputs_.size());
        made->copies_.resize(made->inputs_.size());
        builder_.emit(TapeOp::Stop, 0, 0, 0);
        std::vector<uint16_t> kept;
        for (const StraightTape::Output& output : made->outputs_)
            if (output.value.kind == TapeValue::Number)
                for (size_t k = 0; k < cells_of(output.value.dtype); ++k)
                    kept.push_back(static_cast<uint16_t>(output.value.cell + k));
        made->hot_ = HotTape(builder_.finish(), std::move(kept));
        return made;
    }

  private:
    struct Held {
        TapeValue value;
        bool input = false;
    };

    TapeValue read(Operand o) {
        if (o.constant()) {
            PyObject* constant = p_.constants[o.index()].get();
            if (!is_exact_array(constant) || PyArray_NDIM(as_array(constant)) == 0) return builder_.known(constant);
            for (const StraightTape::Input& input : inputs_)
                if (input.from.constant() && input.from.index() == o.index()) return input.value;
            PyArrayObject* a = as_array(constant);
            return bound({o.index() | Operand::kConstant}, PyArray_DESCR(a), PyArray_NDIM(a));
        }
        if (const auto it = now_.find(o.index()); it != now_.end()) return it->second.value;
        const ValueSpec* spec = specs_[o.index()];
        if (!spec || !spec->descr() || spec->ndim < 0) return {};
        const TapeValue value = bound({o.index()}, spec->descr(), spec->ndim);
        if (value.kind != TapeValue::None) now_[o.index()] = {value, true};
        return value;
    }

    TapeValue bound(Operand from, PyArray_Descr* dtype, int ndim) {
        const TapeValue value = ndim ? builder_.array_new(dtype, ndim, true) : builder_.number_new(dtype);
        if (value.kind != TapeValue::None) inputs_.push_back({from, value});
        return value;
    }

    bool dies(const Instruction& ins, uint32_t slot) const {
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            const Operand o = p_.operands[ins.first_operand + k];
            if (!o.constant() && o.last_use() && o.index() == slot) return true;
        }
        return false;
    }

    // Whether the frame could be left behind this instruction: whatever lives on is known, and still what it was.
    bool fits(const Instruction& ins, const std::vector<TapeValue>& results, bool stores) const {
        for (size_t k = 0; k < results.size(); ++k)
            if (p_.results[ins.first_result + k] != kNoSlot &&
                (results[k].kind == TapeValue::None ||
                 (results[k].kind == TapeValue::Array && !builder_.is_current(results[k]))))
                return false;
        if (!stores) return std::none_of(results.begin(), results.end(), [](const TapeValue& v) { return v.ndim > 0; });
        for (const auto& [slot, held] : now_)
            if (!held.input && held.value.kind == TapeValue::Array && !builder_.is_current(held.value) &&
                !dies(ins, slot))
                return false;
        // Of one array there is one result.
        for (size_t k = 0; k < results.size(); ++k) {
            if (results[k].kind != TapeValue::Array || p_.results[ins.first_result + k] == kNoSlot) continue;
            if (!builder_.was_written(results[k])) return false;
            for (const auto& [slot, held] : now_)
                if (!held.input && held.value.kind == TapeValue::Array && held.value.memory == results[k].memory &&
                    !dies(ins, slot))
                    return false;
            for (size_t j = 0; j < k; ++j)
                if (results[j].kind == TapeValue::Array && results[j].memory == results[k].memory) return false;
        }
        return true;
    }

    void settle(const Instruction& ins, const std::vector<TapeValue>& results) {
        for (uint32_t k = 0; k < ins.n_inputs; ++k) {
            const Operand o = p_.operands[ins.first_operand + k];
            if (o.constant() || !o.last_use()) continue;
            const auto it = now_.find(o.index());
            // What the instruction did not look at is released all the same.
            if (it == now_.end() || it->second.input) released_.push_back(o.index());
            if (it != now_.end()) now_.erase(it);
        }
        for (size_t k = 0; k < results.size(); ++k)
            if (const uint32_t slot = p_.results[ins.first_result + k]; slot != kNoSlot)
                now_[slot] = {results[k], false};
    }

    const Rewrite& r_;
    const Program& p_;
    const Specs& specs_;
    TapeBuilder builder_;
    std::vector<StraightTape::Input> inputs_;
    std::unordered_map<uint32_t, Held> now_;  // by slot
    std::vector<uint32_t> released_;
    uint32_t span_ = 0;
    bool guards_ = false;
};

void find_straight_tapes(const Rewrite& r, Program& p) {
    if (p.instructions.size() < kFewest) return;  // a single group, as most short functions are
    StraightRecorder::Specs specs(p.n_slots, nullptr);
    for (size_t k = 0; k < p.feeds.size(); ++k)
        if (p.feeds[k].slot != kNoSlot) specs[p.feeds[k].slot] = &r.g.spec(r.request.feeds[k]);
    std::unique_ptr<StraightRecorder> run;
    size_t first = 0;
    const auto close = [&] {
        if (run && run->span() >= kFewest) {
            p.tapes.push_back(run->finish());
            p.instructions[first].tape = p.tapes.back().get();
        }
        run.reset();
    };
    for (size_t i = 0; i < p.instructions.size(); ++i) {
        const Instruction& ins = p.instructions[i];
        bool added = run && ins.native && run->add(ins);
        if (!added) close();
        if (!added && ins.native) {
            run = std::make_unique<StraightRecorder>(r, p, specs);
            first = i;
            if (!run->add(ins)) run.reset();
        }
        for (size_t k = 0; k < static_cast<size_t>(ins.callee.n_out); ++k) {
            const uint32_t slot = p.results[ins.first_result + k];
            if (slot == kNoSlot) continue;
            specs[slot] = nullptr;
            if (!ins.native || k >= ins.native->fallback().outputs.size()) continue;
            const auto [member, output] = ins.native->fallback().outputs[k];
            specs[slot] = &r.g.spec({ins.native->fallback().nodes[member], output});
        }
    }
    close();
}

}  // namespace pyop
