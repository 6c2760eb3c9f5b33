// entry/native_call.h: run a plan as a tape that needs no Python: numbers and small arrays into its cells, and results
// out of them (NativeCall).
//
// Arrays of few elements are copied into cells, so that they may lie anywhere and be written over by results; larger
// ones are read where they lie, by element or by parts. What is no tape, such as a plan that computes with large arrays
// as a whole, is left to Python.
//
// Immutable once it is recorded; each run has its state on the stack of its thread. Borrows from the program.
#pragma once

#include "plan/tape/tape_builder.h"

namespace pyop {

class NativeCall {
  public:
    static constexpr npy_intp kMostElements = 1024;  // of an array that is computed with as a whole

    struct Array {
        PyArray_Descr* dtype;
        int ndim;
        const npy_intp* dims;
    };
    // Whether the whole program is such a tape. Attached threads.
    bool record(const Program& p, const std::vector<Array>& inputs, const std::vector<Array>& outputs);

    // Any thread. 1: done; 0: not this way, and nothing is written; -1: a handler of a signal has raised, which happens
    // on a thread that had the GIL before.
    int run(const void* const* in, void* const* out) const;

    bool calls_blas() const { return tape_.calls_blas; }

  private:
    struct Given {
        uint16_t cell;
        uint32_t bytes;  // to copy into cells; 0: read where it lies
        std::vector<int64_t> extents;  // sizes and strides, then
        uint32_t alignment = 1;  // that it must have there
    };
    struct Made {
        uint16_t cell;
        uint32_t bytes;
    };

    bool record(TapeBuilder builder, const Program& p, const std::vector<Array>& inputs,
                const std::vector<Array>& outputs);

    bool load(const void* const* in, TapeCell* cells) const;

    Tape tape_;
    bool has_loops_ = false;
    std::vector<Given> given_;
    std::vector<Made> made_;
};

}  // namespace pyop
