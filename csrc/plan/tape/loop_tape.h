// plan/tape/loop_tape.h: run the iterations of a loop on a tape, stretch by stretch (LoopTape).
//
// Before each stretch what is carried is kept; a stretch that left the tape, or that raised a floating-point error
// which np.errstate does not ignore, is undone, and the caller runs its iterations by the steps of the body: with their
// warnings and errors, in their order.
//
// Machine code does longer stretches; one that it left is undone, and done again by the interpreter.
//
// Arrays that are written are the loop's own (plan/steps/loop.cpp: take), so that nobody sees what is undone. Runs
// attached; reentrant, since a handler of a signal may call the plan again.
#pragma once

#include "plan/machine_code/hot_tape.h"
#include "plan/machine_code/snapshot.h"
#include "plan/tape/tape_builder.h"

namespace pyop {

class LoopTape {
  public:
    static constexpr npy_intp kStretch = 64;  // iterations

    // Null if the body, or the condition (null: there is none), is more than a tape can.
    static std::unique_ptr<LoopTape> make(const Program& body, const Program* test, size_t n_carried, npy_intp step);

    enum class Outcome {
        Over,  // `feeds` holds what is carried out of the loop
        Left,  // the same, as it is before the iteration `i`: the steps must do the next kStretch
        Failed,  // a Python error is set
    };
    // From the iteration `i` on. `feeds`: by feed of the body (the first is not read), owned references.
    Outcome run(PyObject** feeds, npy_intp& i, npy_intp end) const;

    bool writes(size_t feed) const { return bound_[feed].written; }
    const HotTape& hot() const { return hot_; }

  private:
    struct Bound {
        TapeValue value;
        bool written = false;
        bool in_order = false;  // of the shape that is known, in C order
    };
    static std::unique_ptr<LoopTape> make(TapeBuilder builder, const Program& body, const Program* test,
                                          size_t n_carried, npy_intp step);
    void keep(const TapeCell* cells, TapeCell* before) const;
    void put_back(const TapeCell* before, TapeCell* cells) const;
    bool bind(PyObject* const* feeds, TapeCell* cells) const;
    int hand_over(PyObject** feeds, const TapeCell* cells) const;
    size_t bytes_written(PyObject* const* feeds) const;
    bool take(Snapshot& snapshot, PyObject* const* feeds) const;

    HotTape hot_;
    std::vector<Bound> bound_;  // by feed
    size_t n_carried_ = 0;
    std::vector<std::pair<uint16_t, size_t>> kept_;  // cells of what is carried: the first, and how many
    size_t n_kept_ = 0;
    npy_intp step_ = 1;
    uint16_t left_ = 0;  // the cell with the number of iterations
};

}  // namespace pyop
