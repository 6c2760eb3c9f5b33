// plan/tape/straight_tape.h: run instructions of a program that stand one behind the other as one tape (StraightTape).
//
// They stay in the program: where the tape is left, what it wrote is undone and the instructions run. A tape that is
// left again and again is not tried for a while.
//
// What is read comes from the slots of the frame, what somebody reads later goes there; all else is never an array.
// Arrays that are written are written where they lie if nobody else can see them (their slot would be released), else
// copied first, as StoreStep does. Runs attached, on one thread; the GIL guards what is mutable.
#pragma once

#include "array/memory/recycle.h"
#include "graph/passes/rewrite.h"
#include "plan/machine_code/hot_tape.h"
#include "plan/machine_code/snapshot.h"
#include "plan/program.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

class StraightTape {
  public:
    // 1: done, the next instruction is span() further; 0: not this way, nothing has changed; -1: error set.
    int run(const Program& p, PyObject** slots) const;
    uint32_t span() const { return span_; }
    const HotTape& hot() const { return hot_; }

  private:
    friend class StraightRecorder;

    struct Input {
        Operand from;
        TapeValue value;
        bool written = false;   // the array
        bool own = false;       // it may be written where it lies, if nobody else holds it
        int32_t moves_to = -1;  // the output that is this array in the end
    };
    struct Output {
        uint32_t slot;
        TapeValue value;
    };

    TapeEnd with_flags(TapeEnd end) const;
    TapeEnd run_code(TapeFunction* code, PyObject* const* written, TapeCell* cells) const;
    PyObject* number_new(size_t output, const TapeCell* cells) const;

    HotTape hot_;
    uint32_t span_ = 0;
    std::vector<Input> inputs_;
    std::vector<Output> outputs_;
    std::vector<uint32_t> released_;  // slots of inputs that nobody reads behind the tape
    bool guards_ = false;             // some are among its instructions
    mutable std::vector<ResultRecycler> recyclers_;  // by output
    mutable std::vector<ResultRecycler> copies_;     // by input
    mutable Relaxed<int> credit_ = 8;  // falls when the tape is left; below zero it rests for some runs
};

// Finds the runs of instructions that are worth a tape, and notes them in the program.
void find_straight_tapes(const Rewrite& r, Program& p);

}  // namespace pyop
