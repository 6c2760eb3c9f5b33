// plan/group/cursors.h: track where the streams of a run stand, block by block; part of loop_group.cpp.
#pragma once

#include <algorithm>
#include <atomic>

#include "array/loop/fp_flags.h"
#include "plan/group/layout.h"
#include "plan/group/loop_group.h"
#include "plan/group/row_target.h"
#include "runtime/stack_array.h"

namespace pyop {

// What all threads of a run share.
struct GroupState {
    GroupState(const LoopGroup& of, PyObject* const* given, PyObject** made)
        : group(of), inputs(given), results(made) {}

    const LoopGroup& group;
    PyObject* const* const inputs;
    PyObject** const results;
    GroupLayout layout;
    uint64_t overwritten = 0;  // externals that a result is written over: read into scratch first
    bool in_blocks = false;    // results are computed in scratch, and go from there to where they lie
    Lines rows;  // along which results go straight into `row_targets`: those of the layout, or of the result
    std::vector<RowTarget> row_targets;  // by result; empty: they go from their blocks, which are not rows
    npy_intp block = 0, block_bytes = 0, period = 1;

    const LoopGroup::Code& code() const {
        return PYOP_LIKELY((group.single_ & ~layout.scalar) == 0) ? group.code_ : group.plain_;
    }
    mutable std::atomic<bool> failed = false;

    // Among others of one element NumPy gives an array the stride it has, if it has one: what does not move is a number
    // to power, and squared if the exponent is 2.
    npy_intp stride_of_single(PyArrayObject* a) const {
        if (layout.size != 1 || PyArray_NDIM(a) == 0) return 0;
        return PyArray_NDIM(a) == 1 ? PyArray_STRIDE(a, 0) : PyArray_ITEMSIZE(a);
    }

    bool repeats(const StridedWalk& walk) const {
        return walk.period() && period % walk.period() == 0 && !layout.by_lines;
    }

    char* block_of_result(char* scratch, size_t k) const {
        return scratch + static_cast<npy_intp>(group.n_blocks_ + k) * block_bytes;
    }

    // Gathers elements to their places in a block. Between lines stand elements again, with which all goes well where
    // all goes well with the elements.
    void spread(const StridedWalk& source, npy_intp itemsize, npy_intp start, npy_intp count, char* to) const {
        const auto width = static_cast<size_t>(itemsize);
        npy_intp done = 0;
        layout.lines.each(start, count, [&](npy_intp place, npy_intp element, npy_intp n) {
            char* const here = to + (place - start) * itemsize;
            source.read(element, n, here);
            gather(to + done * itemsize, here, 0, place - start - done, width);
            done = place - start + n;
        });
        if (done == 0) source.read(0, done = 1, to);
        gather(to + done * itemsize, to + (done - 1) * itemsize, 0, count - done, width);
    }
};

// Where the streams of one thread stand.
class GroupCursors {
  public:
    GroupCursors(const GroupState& run, const LoopGroup::Code& code, char* scratch)
        : run_(run), code_(code), scratch_(scratch), streams_(code.streams.size()) {}

    bool gathers() const { return gathered_; }

    // Points at the first block, and fills what stays the same for all.
    void prepare(npy_intp start, npy_intp most) {
        const LoopGroup& group = run_.group;
        size_t walk = 0;
        for (size_t k = 0; k < streams_.size(); ++k) {
            const LoopGroup::Stream& stream = code_.streams[k];
            Cursor c{nullptr, stream.itemsize, nullptr, 0};
            switch (stream.kind) {
                case LoopGroup::Stream::External: {
                    PyArrayObject* a = as_array(run_.inputs[k]);
                    c.base = PyArray_BYTES(a);
                    if (PYOP_LIKELY(run_.layout.contiguous >> k & 1)) {
                        c.advance = stream.itemsize;
                        c.data = c.base + start * stream.itemsize;
                        if (PYOP_UNLIKELY(run_.overwritten >> k & 1)) gathered_ = true;
                    } else if (run_.layout.strided >> k & 1) {
                        c.stride = c.advance = PyArray_STRIDE(a, 0);
                        c.data = c.base + start * c.advance;
                    } else if (run_.layout.scalar >> k & 1) {
                        c.stride = run_.stride_of_single(a);
                        c.data = block_of(stream);
                        gather(c.data, c.base, 0, most, static_cast<size_t>(stream.itemsize));
                    } else {
                        c.data = block_of(stream);
                        const StridedWalk& source = run_.layout.gathered[walk++];
                        if (run_.repeats(source))
                            source.read(0, most, c.data);
                        else
                            gathered_ = true;
                    }
                    break;
                }
                case LoopGroup::Stream::Number:
                    c.stride = 0;
                    c.data = group.number_blocks_[stream.index].get();
                    break;
                case LoopGroup::Stream::Scratch:
                    c.data = block_of(stream);
                    break;
                case LoopGroup::Stream::Output:
                    if (PYOP_UNLIKELY(run_.in_blocks)) {
                        c.data = run_.block_of_result(scratch_, stream.index);
                        break;
                    }
                    c.base = PyArray_BYTES(as_array(run_.results[stream.index]));
                    c.advance = stream.itemsize;
                    c.data = c.base + start * stream.itemsize;
                    break;
            }
            streams_[k] = c;
        }
    }

    // `again`: what was gathered for this block is still in its scratch, and may no longer be where it came from.
    void move(npy_intp start, npy_intp count, bool again = false) {
        for (size_t k = 0; k < streams_.size(); ++k)
            if (Cursor& c = streams_[k]; c.advance) c.data = c.base + start * c.advance;
        if (PYOP_LIKELY(!gathered_)) return;
        size_t walk = 0;
        for (size_t k = 0; k < run_.group.n_externals_; ++k) {
            const LoopGroup::Stream& stream = code_.streams[k];
            Cursor& c = streams_[k];
            if (run_.overwritten >> k & 1) {
                c.data = block_of(stream);
                if (!again) std::copy_n(c.base + start * c.advance, count * stream.itemsize, c.data);
            } else if (!((run_.layout.contiguous | run_.layout.scalar | run_.layout.strided) >> k & 1)) {
                const StridedWalk& source = run_.layout.gathered[walk++];
                if (PYOP_UNLIKELY(run_.layout.by_lines))
                    run_.spread(source, stream.itemsize, start, count, c.data);
                else if (!run_.repeats(source))
                    source.read(start, count, c.data);
            }
        }
    }

    // To a part of a line in the block that begins at `start`.
    void move_within(npy_intp start, npy_intp place) {
        for (size_t k = 0; k < streams_.size(); ++k) {
            const LoopGroup::Stream& stream = code_.streams[k];
            Cursor& c = streams_[k];
            if (c.advance)
                c.data = c.base + place * c.advance;
            else if (stream.kind == LoopGroup::Stream::Output)
                c.data = run_.block_of_result(scratch_, stream.index) + (place - start) * stream.itemsize;
            else if (stream.kind == LoopGroup::Stream::External && !(run_.layout.scalar >> k & 1))
                c.data = block_of(stream) + (place - start) * stream.itemsize;
        }
    }

    // Asks for the memory of a block, so that it comes while NumPy's loops compute, which take long: the
    // processor's own prefetcher begins anew with every page.
    void fetch(npy_intp count) const {
        constexpr npy_intp kCacheLine = 64;
        for (size_t k = 0; k < streams_.size(); ++k) {
            const Cursor& c = streams_[k];
            if (c.advance <= 0) continue;
            const char* const end = c.data + count * c.advance;
            if (code_.streams[k].kind == LoopGroup::Stream::Output)
                for (const char* p = c.data; p < end; p += kCacheLine) __builtin_prefetch(p, 1, 3);
            else
                for (const char* p = c.data; p < end; p += kCacheLine) __builtin_prefetch(p, 0, 3);
        }
    }

    // Stops at the first flag that means something, and returns it.
    int execute(npy_intp count) {
        for (const LoopGroup::Operation& op : code_.operations) {
            run_one(op, count);
            if (!op.test_flags) continue;
            const int flags = op.loop ? all_fp_errors() : fp_errors();
            if (PYOP_LIKELY(flags == 0)) continue;
            if (!op.loop || !op.loop->ignores_flags()) return flags;
            clear_all_fp_errors();
        }
        return 0;
    }

    // All operations on a row, or on parts of it as long as each other where it is longer than a block, then the next:
    // nothing is computed between rows. Returns the flags that are up.
    int execute_rows(npy_intp start, npy_intp count) {
        const int inner = run_.rows.ndim - 2;  // the axis along which rows follow each other
        const npy_intp pitch = inner < 0 ? 0 : run_.rows.pitch[inner], block = run_.block;
        size_t n_operands = 0;
        for (const LoopGroup::Operation& op : code_.operations) n_operands += op.n_operands;
        // By operand of every operation: where it stands, how far its elements are apart, and its rows.
        constexpr size_t kUsual = 4 * LoopGroup::kUsualOperands;
        StackArray<char*, kUsual> data(n_operands);
        StackArray<npy_intp, kUsual> advance(n_operands), next(n_operands);
        const auto each_operand = [&](auto f) {
            size_t j = 0;
            for (const LoopGroup::Operation& op : code_.operations)
                for (size_t k = 0; k < op.n_operands; ++k) f(j++, op.streams[k]);
        };
        each_operand([&](size_t j, uint16_t k) {
            const LoopGroup::Stream& stream = code_.streams[k];
            const bool result = stream.kind == LoopGroup::Stream::Output;
            data[j] = streams_[k].data;
            advance[j] = result ? stream.itemsize : streams_[k].advance;
            next[j] = result ? run_.row_targets[stream.index].pitch() : pitch * advance[j];
        });
        const auto move_on = [&](npy_intp elements) {
            for (size_t j = 0; j < n_operands; ++j) data[j] += advance[j] * elements;
        };
        const auto compute = [&](npy_intp n) {
            size_t first = 0;
            for (const LoopGroup::Operation& op : code_.operations) {
                op.kernel(&data[first], n);
                first += op.n_operands;
            }
        };
        run_.rows.each_run(
            start, count,
            [&](npy_intp place, npy_intp, npy_intp n, const npy_intp* at, npy_intp within, npy_intp alike) {
                each_operand([&](size_t j, uint16_t k) {
                    const LoopGroup::Stream& stream = code_.streams[k];
                    if (stream.kind == LoopGroup::Stream::Output)
                        data[j] = run_.row_targets[stream.index].at(at, within);
                    else if (advance[j])
                        data[j] = streams_[k].base + place * advance[j];
                });
                const npy_intp most = n <= block ? n : (n - 1) / ((n - 1) / block + 1) + 1;
                for (; alike > 0; --alike) {
                    npy_intp done = 0;
                    for (; done + most < n; done += most, move_on(most)) compute(most);
                    compute(n - done);
                    if (PYOP_UNLIKELY(done != 0)) move_on(-done);
#pragma GCC unroll 4
                    for (size_t j = 0; j < n_operands; ++j) data[j] += next[j];
                }
            });
        return fp_errors();
    }

    void run_one(const LoopGroup::Operation& op, npy_intp count) {
        char* data[LoopGroup::kMaxOperands];
        // All places, used or not: a loop of known length costs less than one that stops in time.
#pragma GCC unroll 8
        for (size_t k = 0; k < LoopGroup::kUsualOperands; ++k) data[k] = streams_[op.streams[k]].data;
        for (size_t k = LoopGroup::kUsualOperands; PYOP_UNLIKELY(k < op.n_operands); ++k)
            data[k] = streams_[op.streams[k]].data;
        if (op.kernel) {
            op.kernel(data, count);
            return;
        }
        npy_intp strides[LoopGroup::kMaxOperands];
        for (size_t k = 0; k < op.n_operands; ++k) strides[k] = streams_[op.streams[k]].stride;
        // To NumPy a result of no dimension is a number, which does not move.
        if (PYOP_UNLIKELY(run_.layout.ndim == 0)) std::fill_n(strides, op.loop->n_inputs(), 0);
        if ((*op.loop)(data, count, strides) < 0) run_.failed = true;
    }

    const char* reduced(size_t k) const { return streams_[code_.reduced[k]].data; }

  private:
    // Where a stream stands, and how far its elements are apart; `base` and `advance` of those that lie in arrays.
    struct Cursor {
        char* data;
        npy_intp stride;
        char* base;
        npy_intp advance;
    };

    char* block_of(const LoopGroup::Stream& stream) const { return scratch_ + stream.block * run_.block_bytes; }

    const GroupState& run_;
    const LoopGroup::Code& code_;
    char* const scratch_;
    bool gathered_ = false;
    StackArray<Cursor, 16> streams_;
};

}  // namespace pyop
