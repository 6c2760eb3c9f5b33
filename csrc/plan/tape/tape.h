// plan/tape/tape.h: define Tape, a program over single numbers: registers, array elements, loops and branches.
//
//     steps of a body  →  NativeStep::record  →  TapeBuilder  →  Tape  →  interpret
//
// A step over arrays of no dimension costs some fifty nanoseconds, most of it for the array. On a tape a number lives
// in a cell, and an operation costs one or two.
//
// A tape does only what nobody can notice. Where an index is out of bounds, or something is to be divided by zero, it
// ends with TapeEnd::Left; the caller puts everything back as it was when it began (TapeJournal) and lets the steps do
// it, with NumPy's warnings and errors. Floating-point flags are left for the caller to look at.
//
// A tape is immutable; each run has cells and a journal of its own. It borrows from the program it was made of (loops
// of NumPy, steps), which lives as long. It runs attached; on any thread, if none of its calls may fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "array/loop/strided_loop.h"
#include "kernels/kernel.h"
#include "plan/tape/tape_ops.h"

namespace pyop {

// A number, or a word of the place of an array. What takes 16 bytes has two, the first of them even.
union TapeCell {
    uint8_t Bool, U8;
    int8_t I8;
    int16_t I16;
    uint16_t U16;
    int32_t I32;
    uint32_t U32;
    int64_t I64;
    uint64_t U64;
    float F32;
    double F64;
    char* data;
};

enum class TapeOp : uint16_t {
#define X(name, element) name##element,
    PYOP_TAPE_BINARY(X) PYOP_TAPE_COMPARISON(X) PYOP_TAPE_UNARY(X) PYOP_TAPE_LOGIC(X) PYOP_TAPE_WATCHED(X)
        PYOP_TAPE_CHECKED(X)
#undef X
#define X(from, to) From##from##To##to,
            PYOP_TAPE_CASTS(X)
#undef X
#define X(name) name,
                PYOP_TAPE_OTHERS(X)
#undef X
};

class TapeJournal;

// Where a run finds a block (tape_builder.h): in its cells, behind an address in one of them, or where it always is.
struct TapePlace {
    enum How : uint8_t { Frame, Pointer, Known } how = Frame;
    uint16_t cell = 0;
    int32_t offset = 0;  // bytes
    char* known = nullptr;
};

// The same in a call: always behind an address. Those of cells are put there when a run begins.
struct TapeOperand {
    uint16_t address;
    int32_t offset;  // bytes

    char* find(const TapeCell* r) const { return r[address].data + offset; }
};

// A call of a kernel or of one of NumPy's loops for one element or a block of them, or of a step for one number.
struct TapeCall {
    using Function = bool(const void* self, const TapeCell* x, const TapeCell* y, TapeCell* result);
    using Block = bool(const TapeCall& call, TapeCell* r, TapeJournal& journal);

    Kernel kernel = nullptr;
    const StridedLoop* loop = nullptr;
    ProductKernel product = nullptr;
    Function* function = nullptr;  // false: leave
    const void* self = nullptr;
    std::shared_ptr<const void> owned;  // what `self` is, where it is this call's
    bool may_fail = false;  // the loop may set a Python error
    bool quiet = false;     // the loop clears no flags, and its own mean something
    std::vector<uint16_t> cells;  // inputs, then outputs
    std::vector<npy_intp> strides;
    // Of blocks:
    Block* block = nullptr;  // false: leave
    npy_intp n = 1;          // elements
    std::vector<TapePlace> places;  // until the call is written down
    std::vector<TapeOperand> operands;
    std::vector<npy_intp> sizes;
};

struct TapeInstruction {
    TapeOp op;
    uint16_t a, b, c;  // cells, mostly: the result and the operands
    union {
        int64_t number;
        const TapeCall* call;
        struct {
            uint16_t d;
            int16_t e;
            int32_t f;
        } more;
    };
};
static_assert(sizeof(TapeInstruction) == 16);

// What stores have overwritten since the last mark, to be put back.
class TapeJournal {
  public:
    struct Entry {
        char* at;
        uint64_t old;
        size_t size;
    };

    TapeJournal() : top_(first_), limit_(first_ + kFirst) {}
    TapeJournal(const TapeJournal&) = delete;
    TapeJournal& operator=(const TapeJournal&) = delete;

    template <size_t size>
    void note(char* at) {
        if (__builtin_expect(top_ == limit_, 0)) grow();
        uint64_t old = 0;
        std::memcpy(&old, at, size);
        *top_++ = {at, old, size};
    }
    void mark() { top_ = begin(); }
    void undo() {
        for (Entry* first = begin(); top_ != first;) {
            --top_;
            std::memcpy(top_->at, &top_->old, top_->size);
        }
    }
    size_t size() { return static_cast<size_t>(top_ - begin()); }
    // Makes room for one more. Of machine code, which notes by itself: an entry at `top`, unless that is the limit.
    void grow();
    static size_t offset_of_top() { return offsetof(TapeJournal, top_); }
    static size_t offset_of_limit() { return offsetof(TapeJournal, limit_); }

  private:
    static constexpr size_t kFirst = 64, kMany = kFirst << 12;
    Entry* begin() { return more_ ? more_.get() : first_; }

    Entry first_[kFirst];
    std::unique_ptr<Entry[]> more_;
    Entry *top_, *limit_;
};

struct Tape {
    std::vector<TapeInstruction> code;
    std::vector<std::unique_ptr<TapeCall>> calls;
    std::vector<TapeCell> cells;  // as a run finds them
    std::vector<std::pair<uint16_t, uint16_t>> filled;  // of `cells`, the first and how many: others are scratch
    std::vector<uint16_t> integers;  // cells that hold the same int64 in every run
    std::vector<std::pair<uint16_t, uint16_t>> addresses;  // cells, and of which ones they hold the address
    std::vector<size_t> ahead;  // of `calls`: those made once, when a run begins and all that it is given is there
    bool calls_blas = false;
    bool calls_loops = false;     // these may raise flags that only all_fp_errors() sees

    void begin(TapeCell* r) const {
        for (const auto& [first, n] : filled) std::copy_n(cells.data() + first, n, r + first);
        for (const auto& [address, cell] : addresses) r[address].data = reinterpret_cast<char*>(r + cell);
    }
};

enum class TapeEnd {
    Done,     // all iterations that were asked for
    Stopped,  // the condition of the loop does not hold
    Left,     // not this way: put back what was written
    Failed,   // a signal has raised: a Python error is set
};

// Iterations until a long run looks at signals, and lets other threads run for a moment.
inline constexpr unsigned kUntilLook = 1 << 18;
// So many of them a call on a block takes the time of.
inline constexpr unsigned kBlockLook = 16;

// `until_look` counts down. `impatient`: a run that is not over when it looks at signals is left, for whoever does it
// in stretches.
TapeEnd interpret(const TapeInstruction* code, TapeCell* cells, TapeJournal& journal, unsigned& until_look,
                  bool impatient = false);

// CallKernel and CallLoop. False: leave.
bool call_for_one(const TapeCall& call, TapeCell* cells);

// Signals, and a moment for others, where attached: nobody but this run sees what it writes. 0, or -1 with the error
// set.
int look_around();

}  // namespace pyop
