// plan/machine_code/hot_tape.cpp: decide when a tape is hot, and how much of it is done at once.
#include "plan/machine_code/hot_tape.h"

#include <algorithm>

namespace pyop {

namespace {

constexpr uint64_t kHot = 4 << 20;  // operations: some milliseconds of the interpreter's
constexpr size_t kEntry = sizeof(TapeJournal::Entry);
constexpr double kFewNoted = 256, kMostNoted = 4096, kMostIterations = 1 << 20;

}  // namespace

HotTape::HotTape(Tape tape, std::vector<uint16_t> kept) : tape_(std::move(tape)), kept_(std::move(kept)) {
    for (const TapeInstruction& i : tape_.code) loops_ |= i.op == TapeOp::Repeat;
}

TapeFunction* HotTape::code() const {
    if (policy_ == MachineCodePolicy::Off) return nullptr;
    if (!code_) {
        if (policy_ != MachineCodePolicy::Now && work_ < kHot) return nullptr;
        describe();
        if (PyErr_Occurred()) PyErr_Clear();
        if (!code_) return nullptr;
    }
    TapeCode& code = tape_code_of(code_.get());
    const bool now = policy_ == MachineCodePolicy::Now;
    if (PYOP_UNLIKELY(code.state == TapeCode::Cold) && (now || work_ >= kHot)) want_machine_code(code_.get(), now);
    if (code.state != TapeCode::Ready) return nullptr;
    if (PYOP_LIKELY(credit_ >= 0)) return code.function;
    if (++credit_ == 0) credit_ = 1;
    return nullptr;
}

bool HotTape::may_become_code() const {
    if (policy_ != MachineCodePolicy::Hot || !loops_) return false;
    return !code_ || tape_code_of(code_.get()).state < TapeCode::Ready;
}

void HotTape::count(uint64_t iterations, unsigned before, unsigned after) const {
    const uint64_t inner = before >= after ? before - after : before + kUntilLook - after;
    work_ += (iterations + inner) * tape_.code.size();
}

void HotTape::was_left() const {
    credit_ -= 3;
    if (credit_ < 0) credit_ = -kRest;
}

void HotTape::note_stores(size_t stores, uint64_t iterations) const {
    const auto all = static_cast<double>(stores);
    stores_ = iterations > 1 ? all / static_cast<double>(iterations) : all;
}

uint64_t HotTape::stretch(uint64_t left) const {
    const double known = std::clamp(kMostNoted / std::max<double>(stores_, 1e-6), 1.0, kMostIterations);
    return std::min(left, stores_ < 0 ? (loops_ ? uint64_t{1} : uint64_t{64}) : static_cast<uint64_t>(known));
}

bool HotTape::is_snapshot_better(uint64_t iterations, size_t bytes) const {
    const double noted = stores_ * static_cast<double>(iterations);
    return noted > kFewNoted && noted * static_cast<double>(kEntry) > static_cast<double>(bytes);
}

Ref HotTape::describe() const {
    static constinit BriefMutex making;
    {
        const BriefLock lock(making);
        if (code_) return code_;
    }
    Ref made = tape_code_new(write_ir(tape_, kept_), tape_.code.size());
    const BriefLock lock(making);
    if (!code_) std::swap(code_, made);  // else another thread was quicker
    return code_;
}

std::string HotTape::text() const {
    const std::string text = "a tape of " + std::to_string(tape_.code.size()) + " operations, ";
    if (policy_ == MachineCodePolicy::Off || !describe()) {
        PyErr_Clear();
        return text + "interpreted";
    }
    const TapeCode& code = tape_code_of(code_.get());
    switch (code.state) {
        case TapeCode::Cold:
            return text + "interpreted until it is hot";
        case TapeCode::Waiting:
            return text + "interpreted, waiting for machine code";
        case TapeCode::Ready:
            return text + "machine code";
        default:
            return text + "interpreted: " + code.why_not;
    }
}

}  // namespace pyop
