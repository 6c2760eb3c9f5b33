// plan/tape/loop_tape.cpp: make the tape of a body, and run it on the arrays at hand.
#include "plan/tape/loop_tape.h"

#include <algorithm>

#include "array/loop/fp_flags.h"
#include "plan/program.h"
#include "plan/tape/bound_array.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

uint64_t trips(npy_intp i, npy_intp end, npy_intp step) {
    const auto u = [](npy_intp x) { return static_cast<uint64_t>(x); };
    if (step > 0) return i < end ? (u(end) - u(i) - 1) / u(step) + 1 : 0;
    return i > end ? (u(i) - u(end) - 1) / (0 - u(step)) + 1 : 0;
}

}  // namespace

std::unique_ptr<LoopTape> LoopTape::make(const Program& body, const Program* test, size_t n_carried, npy_intp step) {
    // Elements of arrays are best read and written where they lie: blocks are for what cannot do with them.
    std::unique_ptr<LoopTape> made = make(TapeBuilder(), body, test, n_carried, step);
    return made ? std::move(made) : make(TapeBuilder(TapeBuilder::kMostElements), body, test, n_carried, step);
}

std::unique_ptr<LoopTape> LoopTape::make(TapeBuilder builder, const Program& body, const Program* test,
                                         size_t n_carried, npy_intp step) {
    auto made = std::make_unique<LoopTape>();
    PyArray_Descr* const intp = PyArray_DescrFromType(NPY_INTP);  // lives for ever
    Py_DECREF(intp);
    std::vector<TapeValue> feeds{builder.number_new(intp)};
    for (size_t k = 1; k < body.feeds.size(); ++k) {
        const Feed& feed = body.feeds[k];
        TapeValue value;
        if (feed.dtype && feed.ndim == 0) value = builder.number_new(feed.dtype);
        const bool shaped = builder.with_blocks() && feed.ndim > 0 && feed.ndim <= TapeValue::kAxes &&
                            std::all_of(feed.dims.begin(), feed.dims.end(), [](npy_intp n) { return n >= 0; });
        if (feed.dtype && shaped) value = builder.block_new(feed.dtype, feed.ndim, feed.dims.data());
        if (feed.dtype && feed.ndim > 0 && value.kind == TapeValue::None)
            value = builder.array_new(feed.dtype, feed.ndim, k <= n_carried, shaped ? feed.dims.data() : nullptr);
        // What nobody reads may be anything.
        if (value.kind == TapeValue::None && (k <= n_carried || feed.slot != kNoSlot)) return nullptr;
        feeds.push_back(value);
        if (k > n_carried) builder.holds(value);
    }
    made->left_ = builder.cells_new(1);
    size_t stop;
    if (!builder.iteration(body, test, n_carried, feeds, stop)) return nullptr;
    builder.emit(TapeOp::Next, feeds[0].cell, made->left_, 0, step);
    if (test) {
        builder.jump_here(stop);
        builder.emit(TapeOp::Stop, 0, 0, 0);
    }
    for (const TapeValue& value : feeds) {
        const bool array = value.kind == TapeValue::Array;
        made->bound_.push_back({value, array && builder.was_written(value),
                                value.kind == TapeValue::Block || (array && builder.relies_on(value))});
    }
    made->n_carried_ = n_carried;
    for (size_t k = 1; k <= n_carried; ++k) {
        const TapeValue& value = feeds[k];
        if (value.kind == TapeValue::Array) continue;
        const auto bytes = static_cast<size_t>(value.size() * PyDataType_ELSIZE(value.dtype));
        made->kept_.emplace_back(value.cell, (bytes + sizeof(TapeCell) - 1) / sizeof(TapeCell));
        made->n_kept_ += made->kept_.back().second;
    }
    made->step_ = step;
    std::vector<uint16_t> kept{feeds[0].cell, made->left_};
    for (const auto& [cell, n] : made->kept_)
        for (size_t k = 0; k < n; ++k) kept.push_back(static_cast<uint16_t>(cell + k));
    made->hot_ = HotTape(builder.finish(), std::move(kept));
    // Each run begins with a copy of the cells.
    constexpr size_t kMostCells = 1 << 13;
    return made->hot_.tape().cells.size() > kMostCells && builder.with_blocks() ? nullptr : std::move(made);
}

bool LoopTape::bind(PyObject* const* feeds, TapeCell* cells) const {
    for (size_t k = 1; k < bound_.size(); ++k) {
        const TapeValue& value = bound_[k].value;
        if (value.kind == TapeValue::None) continue;
        if (!fits_tape(feeds[k], value)) return false;
        if (bound_[k].in_order && !lies_in_order(feeds[k], value)) return false;
        if (bound_[k].written && !PyArray_ISWRITEABLE(as_array(feeds[k]))) return false;
        bind_to_tape(feeds[k], value, cells);
    }
    return true;
}

// What is carried on as a number or a block, in an array of its own.
int LoopTape::hand_over(PyObject** feeds, const TapeCell* cells) const {
    for (size_t k = 1; k <= n_carried_; ++k) {
        const TapeValue& value = bound_[k].value;
        if (value.kind == TapeValue::Array) continue;
        PyArray_Descr* const dtype = value.dtype;
        Py_INCREF(dtype);
        PyObject* made =
            PyArray_NewFromDescr(&PyArray_Type, dtype, value.ndim, value.dims.data(), nullptr, nullptr, 0, nullptr);
        if (!made) return -1;
        std::memcpy(PyArray_DATA(as_array(made)), cells + value.cell,
                    static_cast<size_t>(value.size() * PyDataType_ELSIZE(dtype)));
        Py_XSETREF(feeds[k], made);
    }
    return 0;
}

void LoopTape::keep(const TapeCell* cells, TapeCell* before) const {
    for (const auto& [cell, n] : kept_) before = std::copy_n(cells + cell, n, before);
}

void LoopTape::put_back(const TapeCell* before, TapeCell* cells) const {
    for (const auto& [cell, n] : kept_) {
        std::copy_n(before, n, cells + cell);
        before += n;
    }
}

size_t LoopTape::bytes_written(PyObject* const* feeds) const {
    size_t bytes = 0;
    for (size_t k = 1; k < bound_.size(); ++k)
        if (bound_[k].written) bytes += static_cast<size_t>(PyArray_NBYTES(as_array(feeds[k])));
    return bytes;
}

bool LoopTape::take(Snapshot& snapshot, PyObject* const* feeds) const {
    for (size_t k = 1; k < bound_.size(); ++k)
        if (bound_[k].written && !snapshot.take(as_array(feeds[k]))) return false;
    return true;
}

LoopTape::Outcome LoopTape::run(PyObject** feeds, npy_intp& i, npy_intp end) const {
    const Tape& tape = hot_.tape();
    StackArray<TapeCell, 256> memory(tape.cells.size() + 1);
    TapeCell* const cells = memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 16 != 0);
    tape.begin(cells);
    if (!bind(feeds, cells)) return Outcome::Left;
    StackArray<TapeCell, 64> before(n_kept_);
    TapeJournal journal;
    unsigned until_look = kUntilLook;
    int ignored = 0;
    bool may_be_code = true;
    TapeCell& number = cells[bound_[0].value.cell];
    uint64_t left = trips(i, end, step_);
    TapeFunction* code = left > 0 ? hot_.code() : nullptr;
    if (all_fp_errors()) clear_all_fp_errors();
    for (const size_t k : tape.ahead) tape.calls[k]->block(*tape.calls[k], cells, journal);
    number.I64 = i;
    while (left > 0) {
        const bool snaps = code && hot_.is_snapshot_better(left, bytes_written(feeds));
        const uint64_t stretch = snaps ? left : code ? hot_.stretch(left) : std::min<uint64_t>(left, kStretch);
        Snapshot snapshot;
        if (snaps && !take(snapshot, feeds)) return Outcome::Failed;
        keep(cells, before.data());
        journal.mark();
        cells[left_].U64 = stretch;
        const unsigned look_before = until_look;
        TapeEnd end_of_stretch = code ? hot_.run(code, cells, snaps ? nullptr : &journal, until_look)
                                      : interpret(tape.code.data(), cells, journal, until_look);
        if (end_of_stretch == TapeEnd::Failed) return Outcome::Failed;
        if (const int flags = tape.calls_loops ? all_fp_errors() : fp_errors(); PYOP_UNLIKELY(flags != 0)) {
            clear_all_fp_errors();
            if (!(flags & ~ignored) || errstate_ignores(flags))
                ignored |= flags;
            else
                end_of_stretch = TapeEnd::Left;
        }
        if (PYOP_UNLIKELY(end_of_stretch == TapeEnd::Left)) {
            if (snaps && snapshot.put_back() < 0) return Outcome::Failed;
            if (!snaps) journal.undo();
            put_back(before.data(), cells);
            if (!code) return hand_over(feeds, cells) < 0 ? Outcome::Failed : Outcome::Left;
            number.I64 = i;
            hot_.was_left();
            code = nullptr;
            may_be_code = false;
            continue;
        }
        if (!snaps) hot_.note_stores(journal.size(), stretch);
        i = number.I64;
        left -= stretch;
        if (end_of_stretch == TapeEnd::Stopped) break;
        if (code) continue;  // has looked
        hot_.count(stretch, look_before, until_look);
        if (PYOP_LIKELY(until_look > kStretch)) {
            until_look -= kStretch;
        } else {
            until_look = kUntilLook;
            if (look_around() < 0) return Outcome::Failed;
        }
        if (may_be_code && left > 0) code = hot_.code();
        if (code && all_fp_errors()) clear_all_fp_errors();  // of Python, which was asked for it
    }
    if (code) hot_.went_well();
    return hand_over(feeds, cells) < 0 ? Outcome::Failed : Outcome::Over;
}

}  // namespace pyop
