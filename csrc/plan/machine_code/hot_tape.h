// plan/machine_code/hot_tape.h: run a tape by the interpreter first, and by machine code when it is hot: when its
// iterations times its operations are many (HotTape; no clock is asked).
//
// Machine code that left its tape, or raised a flag, is undone, and the interpreter does the same iterations, so only
// that decides what is left to the steps. A tape of which this is so again and again rests. Attached threads: what is
// counted may be counted wrongly where several run it, and the code is made once.
#pragma once

#include "plan/machine_code/tape_code.h"
#include "runtime/without_gil.h"

namespace pyop {

class HotTape {
  public:
    HotTape() = default;
    // `kept`: the cells that are read behind a run, or by the next one.
    HotTape(Tape tape, std::vector<uint16_t> kept);

    const Tape& tape() const { return tape_; }
    // What is to be run now: null for the interpreter.
    TapeFunction* code() const;
    TapeEnd run(TapeFunction* code, TapeCell* cells, TapeJournal* journal, unsigned& until_look) const {
        return static_cast<TapeEnd>(code(cells, journal, &until_look, tape_code_of(code_.get()).ir.table.data()));
    }

    // Whether it has loops that may be run by machine code some day, and not now.
    bool may_become_code() const;

    // After a run of the interpreter, with what `until_look` was before and is.
    void count(uint64_t iterations, unsigned before, unsigned after) const;
    // What became of a run by machine code.
    void went_well() const { credit_ += credit_ < kMostCredit; }
    void was_left() const;
    // How many stores so many iterations were.
    void note_stores(size_t stores, uint64_t iterations) const;
    // How many of these iterations machine code does with a journal at once.
    uint64_t stretch(uint64_t left) const;
    // Whether so many iterations note more than it is to copy all that they may write.
    bool is_snapshot_better(uint64_t iterations, size_t bytes) const;

    // Machine code as it is; it is written down first if nobody has asked for it. Null with an error set.
    Ref describe() const;
    // The same in words, for Plan.explain().
    std::string text() const;
    void set_policy(MachineCodePolicy policy) const { policy_ = policy; }

  private:
    static constexpr int kMostCredit = 8, kRest = 64;

    Tape tape_;
    std::vector<uint16_t> kept_;
    bool loops_ = false;  // there are loops inside of an iteration
    mutable Ref code_;    // TapeCode
    mutable Relaxed<uint64_t> work_ = 0;
    mutable Relaxed<double> stores_ = -1;  // by iteration; -1: not known yet
    mutable Relaxed<int> credit_ = kMostCredit;  // falls when the tape is left; below zero it rests for some runs
    mutable MachineCodePolicy policy_ = default_policy();
};

}  // namespace pyop
