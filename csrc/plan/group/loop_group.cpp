// plan/group/loop_group.cpp: one run: blocks, threads, floating-point errors, and the results' memory.
#include "plan/group/loop_group.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>

#include "array/loop/fp_flags.h"
#include "array/loop/ufunc_errors.h"
#include "array/memory/overlap.h"
#include "array/memory/pool.h"
#include "array/reduction/row_reduction.h"
#include "plan/group/layout.h"
#include "plan/group/scratch.h"
#include "runtime/attach.h"
#include "runtime/cpu_pool.h"
#include "runtime/interrupt.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

constexpr npy_intp kReleaseElements = 1 << 15;  // below this, giving up the GIL costs more than it gives
constexpr size_t kScratchOnStack = 4096;        // bytes
constexpr npy_intp kCacheLine = 64;
constexpr npy_intp kShareElements = 1 << 17;    // for each thread, at least

thread_local ScratchMemory scratch_memory;

std::mutex diagnosis_mutex;  // of GroupRun::flags_, when several threads share a run

}  // namespace

// One run of a group.
class GroupRun {
  public:
    GroupRun(const LoopGroup& group, PyObject* const* inputs, PyObject** results, const StepContext& context)
        : group_(group), inputs_(inputs), results_(results), context_(context) {}

    int run() {
        if (!layout_.find(group_, inputs_) || !find_rows()) return 0;
        const size_t n = group_.depends_.size();
        for (size_t k = 0; k < n; ++k) {
            results_[k] = result_new(k);
            if (results_[k]) continue;
            drop(k);
            return -1;
        }
        set_block();
        bool enough_memory;
        if (layout_.size >= kReleaseElements) interrupts_.begin();
        {
            const DetachScope detached(layout_.size >= kReleaseElements);
            enough_memory = run_all();
        }
        if (PYOP_UNLIKELY(interrupts_.raised())) {
            drop(n);
            interrupts_.raise();
            return -1;
        }
        if (PYOP_UNLIKELY(!enough_memory)) {
            drop(n);
            PyErr_NoMemory();
            return -1;
        }
        // Loops of the older kind return nothing: an error set is all that tells of their failure.
        if (PYOP_UNLIKELY(failed_ || (group_.may_fail_ && PyErr_Occurred()))) {
            PyErr_Clear();  // the ufunc will set it again, with all its words
            drop(n);
            return 0;
        }
        if (PYOP_UNLIKELY(flags_ != nullptr) && report() < 0) {
            drop(n);
            return -1;
        }
        return 1;
    }

  private:
    using Code = LoopGroup::Code;
    using Stream = LoopGroup::Stream;

    // --- results

    PyObject* result_new(size_t k) {
        if (const int r = group_.reduction_of_output_[k]; r >= 0)
            return reduced_new(group_.reductions_[static_cast<size_t>(r)], k);
        PyArray_Descr* dtype = group_.code_.streams[group_.output_streams_[k]].dtype;
        PyObject* target = context_.targets ? context_.targets[k] : nullptr;
        if (target && may_write(target, dtype)) return Py_NewRef(target);
        for (uint64_t rest = context_.dying & layout_.contiguous; rest && !group_.may_decline_; rest &= rest - 1) {
            const int j = __builtin_ctzll(rest);
            PyArrayObject* a = as_array(inputs_[j]);
            if (PyArray_DESCR(a) != dtype || (overwritten_ >> j & 1) || PyArray_NDIM(a) != layout_.ndim) continue;
            uint64_t same = 0;  // one array may be two externals: one that is strict and one that is not
            for (size_t other = 0; other < group_.n_externals_; ++other)
                if (inputs_[other] == inputs_[j]) same |= uint64_t{1} << other;
            if (same & ~layout_.contiguous) continue;
            overwritten_ |= same;
            return Py_NewRef(inputs_[j]);
        }
        if (PYOP_LIKELY(!layout_.fortran)) {
            if (layout_.size * PyDataType_ELSIZE(dtype) <= ResultRecycler::kMostBytes)
                return group_.recyclers_[k].take(dtype, layout_.ndim, layout_.shape);
            return pooled_array_new(dtype, layout_.ndim, layout_.shape, nullptr);
        }
        npy_intp strides[NPY_MAXDIMS], step = PyDataType_ELSIZE(dtype);
        for (int d = 0; d < layout_.ndim; step *= std::max<npy_intp>(layout_.shape[d++], 1)) strides[d] = step;
        return pooled_array_new(dtype, layout_.ndim, layout_.shape, strides);
    }

    PyObject* reduced_new(const LoopGroup::Reduction& reduction, size_t k) {
        const Reduction& how = reduction.what->call.reduction;
        const int kept = layout_.ndim - reduction.what->n_axes;
        npy_intp shape[NPY_MAXDIMS], size = how.loop->itemsize();
        for (int d = 0; d < layout_.ndim; ++d) shape[d] = d < kept ? layout_.shape[d] : 1;
        for (int d = 0; d < kept; ++d) size *= shape[d];
        const int ndim = how.keepdims ? layout_.ndim : kept;
        if (size > ResultRecycler::kMostBytes) return pooled_array_new(how.loop->dtype(), ndim, shape, nullptr);
        return group_.recyclers_[k].take(how.loop->dtype(), ndim, shape);
    }

    // Elements in the rows that are reduced. False if there is nothing to reduce, or if rows do not lie side by side.
    bool find_rows() {
        for (const LoopGroup::Reduction& r : group_.reductions_) {
            const int kept = layout_.ndim - r.what->n_axes;
            if (layout_.size == 0 || kept < 0 || (layout_.fortran && kept > 0)) return false;
            npy_intp row = 1;
            for (int d = kept; d < layout_.ndim; ++d) row *= layout_.shape[d];
            rows_.push_back(row);
        }
        return true;
    }

    // Whether an array of the caller can take a result as it is computed: of its dtype, shape and order, and apart from
    // everything that is read. An input it coincides with is read before it is written.
    bool may_write(PyObject* target, PyArray_Descr* dtype) {
        if (!is_exact_array(target) || group_.may_decline_) return false;
        PyArrayObject* a = as_array(target);
        const int order = layout_.fortran ? NPY_ARRAY_F_CONTIGUOUS : NPY_ARRAY_C_CONTIGUOUS;
        if (PyArray_DESCR(a) != dtype || PyArray_NDIM(a) != layout_.ndim ||
            !PyArray_CHKFLAGS(a, order | NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE) ||
            !PyArray_CompareLists(PyArray_DIMS(a), layout_.shape, layout_.ndim))
            return false;
        uint64_t same = 0;
        const npy_intp bytes = layout_.size * PyDataType_ELSIZE(dtype);
        for (size_t j = 0; j < group_.n_externals_; ++j) {
            PyArrayObject* read = as_array(inputs_[j]);
            // Contiguous externals lie as side by side as the target does.
            if (PYOP_LIKELY(layout_.contiguous >> j & 1)) {
                const char* low = PyArray_BYTES(read);
                const npy_intp extent = layout_.size * PyDataType_ELSIZE(PyArray_DESCR(read));
                if (low + extent <= PyArray_BYTES(a) || PyArray_BYTES(a) + bytes <= low) continue;
            } else if (!may_overlap(a, read)) {
                continue;
            }
            const bool coincides = (layout_.contiguous >> j & 1) && PyArray_DATA(read) == PyArray_DATA(a) &&
                                   PyArray_ITEMSIZE(read) == PyArray_ITEMSIZE(a) && !(overwritten_ >> j & 1);
            if (!coincides) return false;
            same |= uint64_t{1} << j;
        }
        for (PyObject** other = results_; *other != nullptr && other < results_ + group_.depends_.size(); ++other)
            if (may_overlap(a, as_array(*other))) return false;
        overwritten_ |= same;
        return true;
    }

    void drop(size_t n) {
        for (size_t k = 0; k < n; ++k) Py_CLEAR(results_[k]);
    }

    // --- blocks

    // As many elements as fit, and a multiple of what a repeated operand repeats after, if that is short.
    void set_block() {
        block_ = group_.block_;
        npy_intp period = 1;
        for (const StridedWalk& walk : layout_.gathered)
            if (walk.period() > period && walk.period() <= block_ / 2 && walk.period() % period == 0)
                period = walk.period();
        block_ -= block_ % period;
        period_ = period;
        block_bytes_ = group_.block_bytes_;
        if (layout_.size < block_) block_bytes_ = (layout_.size * group_.widest_ + 63) & ~npy_intp{63};
    }

    bool run_all() {
        if (PYOP_LIKELY(layout_.size < 2 * kShareElements)) return run_range(0, layout_.size);
        const npy_intp n_blocks = (layout_.size + block_ - 1) / block_;
        const auto parts = static_cast<int>(
            std::min<npy_intp>({static_cast<npy_intp>(context_.threads), layout_.size / kShareElements, n_blocks}));
        // An error that a loop sets on another thread would be lost.
        if (PYOP_LIKELY(parts <= 1 || group_.may_fail_)) return run_range(0, layout_.size);
        // Rows are not divided: each is reduced as NumPy would.
        npy_intp grain = block_;
        if (!rows_.empty()) {
            grain = period_;
            for (const npy_intp row : rows_) grain = std::lcm(grain, row);
        }
        const npy_intp n_grains = (layout_.size + grain - 1) / grain;
        if (n_grains < parts) return run_range(0, layout_.size);
        std::atomic<bool> done = true;
        run_parts(parts, [&](int part) {
            const npy_intp from = n_grains * part / parts * grain;
            const npy_intp to = std::min(n_grains * (part + 1) / parts * grain, layout_.size);
            if (!run_range(from, to)) done = false;
        });
        return done;
    }

    // False if there is no memory.
    bool run_range(npy_intp from, npy_intp to) {
        alignas(64) char here[kScratchOnStack];
        char* scratch = here;
        if (static_cast<size_t>(block_bytes_) * group_.n_blocks_ > kScratchOnStack) {
            scratch = scratch_memory.reserve(static_cast<size_t>(block_bytes_) * group_.n_blocks_);
            if (!scratch) return false;
        }
        // Flags that were raised before make the first block look as if it had failed: it is diagnosed, which clears
        // them.
        Cursors cursors(*this, group_.code_, scratch);
        cursors.prepare(from, std::min(block_, to - from));
        std::vector<RowReduction> reductions;
        reductions.reserve(rows_.size());
        for (size_t k = 0; k < rows_.size(); ++k) {
            const LoopGroup::Reduction& r = group_.reductions_[k];
            const ReductionLoop& loop = *r.what->call.reduction.loop;
            reductions.emplace_back(loop, r.what->initial(), rows_[k], reduced(k, from));
        }
        // What was raised before is not the reductions' fault; kernels leave the x87 flags, which NumPy's loops look at
        // too.
        if (!reductions.empty() && all_fp_errors()) clear_all_fp_errors();
        unsigned blocks = 0;
        for (npy_intp start = from; start < to; start += block_) {
            if (PYOP_UNLIKELY(++blocks % 16 == 0) && interrupted()) return true;
            const npy_intp count = std::min(block_, to - start);
            if (start != from || cursors.gathers()) cursors.move(start, count);
            if (!group_.loops_.empty() && to - from > block_) cursors.fetch(count);
            if (PYOP_LIKELY(cursors.execute(count) == 0)) {
                reduce(cursors, count, reductions);
            } else {
                Cursors plain(*this, group_.plain_, scratch);
                diagnose(plain, start, count);
                reduce(plain, count, reductions);
            }
        }
        for (size_t k = 0; k < rows_.size(); ++k) {
            const RowsReduced& what = *group_.reductions_[k].what;
            char* const sums = reduced(k, from);
            if (!what.mean || !sums) continue;
            const bool wide = what.call.reduction.loop->itemsize() == sizeof(double);
            divide_sums(sums, (to - from) / rows_[k], rows_[k], wide);
            if (all_fp_errors()) failed_ = true;  // NumPy will say what it calls it
            clear_all_fp_errors();
        }
        return true;
    }

    // A handler of a signal may run anything, this very group on this thread too: that gets scratch of its own.
    bool interrupted() {
        if (PYOP_LIKELY(!interrupts_.due())) return interrupts_.raised();
        ScratchMemory ours;
        ours.swap(scratch_memory);
        interrupts_.listen();
        ours.swap(scratch_memory);
        if (all_fp_errors()) clear_all_fp_errors();
        return interrupts_.raised();
    }

    // Where a stream stands, and how far its elements are apart; `base` and `advance` of those that lie in arrays.
    struct Cursor {
        char* data;
        npy_intp stride;
        char* base;
        npy_intp advance;
    };

    // Where the streams of one thread stand.
    class Cursors {
      public:
        Cursors(const GroupRun& run, const Code& code, char* scratch)
            : run_(run), code_(code), scratch_(scratch), streams_(code.streams.size()) {}

        bool gathers() const { return gathered_; }

        // Points at the first block, and fills what stays the same for all.
        void prepare(npy_intp start, npy_intp most) {
            const LoopGroup& group = run_.group_;
            size_t walk = 0;
            for (size_t k = 0; k < streams_.size(); ++k) {
                const Stream& stream = code_.streams[k];
                Cursor c{nullptr, stream.itemsize, nullptr, 0};
                switch (stream.kind) {
                    case Stream::External: {
                        PyArrayObject* a = as_array(run_.inputs_[k]);
                        c.base = PyArray_BYTES(a);
                        if (PYOP_LIKELY(run_.layout_.contiguous >> k & 1)) {
                            c.advance = stream.itemsize;
                            c.data = c.base + start * stream.itemsize;
                            if (PYOP_UNLIKELY(run_.overwritten_ >> k & 1)) gathered_ = true;
                        } else if (run_.layout_.strided >> k & 1) {
                            c.stride = c.advance = PyArray_STRIDE(a, 0);
                            c.data = c.base + start * c.advance;
                        } else if (run_.layout_.scalar >> k & 1) {
                            c.stride = run_.stride_of_single(a);
                            c.data = block_of(stream);
                            gather(c.data, c.base, 0, most, static_cast<size_t>(stream.itemsize));
                        } else {
                            c.data = block_of(stream);
                            const StridedWalk& source = run_.layout_.gathered[walk++];
                            if (run_.repeats(source))
                                source.read(0, most, c.data);
                            else
                                gathered_ = true;
                        }
                        break;
                    }
                    case Stream::Number:
                        c.stride = 0;
                        c.data = group.number_blocks_[stream.index].get();
                        break;
                    case Stream::Scratch:
                        c.data = block_of(stream);
                        break;
                    case Stream::Output:
                        c.base = PyArray_BYTES(as_array(run_.results_[stream.index]));
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
            for (size_t k = 0; k < run_.group_.n_externals_; ++k) {
                const Stream& stream = code_.streams[k];
                Cursor& c = streams_[k];
                if (run_.overwritten_ >> k & 1) {
                    c.data = block_of(stream);
                    if (!again) std::copy_n(c.base + start * c.advance, count * stream.itemsize, c.data);
                } else if (!((run_.layout_.contiguous | run_.layout_.scalar | run_.layout_.strided) >> k & 1)) {
                    const StridedWalk& source = run_.layout_.gathered[walk++];
                    if (!run_.repeats(source)) source.read(start, count, c.data);
                }
            }
        }

        // Asks for the memory of a block, so that it comes while NumPy's loops compute, which take long: the
        // processor's own prefetcher begins anew with every page.
        void fetch(npy_intp count) const {
            for (size_t k = 0; k < streams_.size(); ++k) {
                const Cursor& c = streams_[k];
                if (c.advance <= 0) continue;
                const char* const end = c.data + count * c.advance;
                if (code_.streams[k].kind == Stream::Output)
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

        void run_one(const LoopGroup::Operation& op, npy_intp count) {
            char* data[LoopGroup::kMaxOperands];
            // All places, used or not: a loop of known length costs less than one that stops in time.
#pragma GCC unroll 8
            for (size_t k = 0; k < LoopGroup::kMaxOperands; ++k) data[k] = streams_[op.streams[k]].data;
            if (op.kernel) {
                op.kernel(data, count);
                return;
            }
            npy_intp strides[LoopGroup::kMaxOperands];
            for (size_t k = 0; k < op.n_operands; ++k) strides[k] = streams_[op.streams[k]].stride;
            // To NumPy a result of no dimension is a number, which does not move.
            if (PYOP_UNLIKELY(run_.layout_.ndim == 0)) std::fill_n(strides, op.loop->n_inputs(), 0);
            if ((*op.loop)(data, count, strides) < 0) run_.failed_ = true;
        }

        const char* reduced(size_t k) const { return streams_[code_.reduced[k]].data; }

      private:
        char* block_of(const Stream& stream) const { return scratch_ + stream.block * run_.block_bytes_; }

        const GroupRun& run_;
        const Code& code_;
        char* const scratch_;
        bool gathered_ = false;
        StackArray<Cursor, 16> streams_;
    };

    // Among others of one element NumPy gives an array the stride it has, if it has one: what does not move is a number
    // to power, and squared if the exponent is 2.
    npy_intp stride_of_single(PyArrayObject* a) const {
        if (layout_.size != 1 || PyArray_NDIM(a) == 0) return 0;
        return PyArray_NDIM(a) == 1 ? PyArray_STRIDE(a, 0) : PyArray_ITEMSIZE(a);
    }

    bool repeats(const StridedWalk& walk) const { return walk.period() && period_ % walk.period() == 0; }

    // Runs a block again, one operation a call, and notes which ones raise which flags. Threads may do it at once.
    PYOP_COLD void diagnose(Cursors& cursors, npy_intp start, npy_intp count) {
        cursors.prepare(start, count);
        cursors.move(start, count, true);
        for (const LoopGroup::Operation& op : group_.plain_.operations) {
            clear_all_fp_errors();
            cursors.run_one(op, count);
            if (!op.loop || !op.loop->ignores_flags()) note_flags(op.member);
        }
        clear_all_fp_errors();
    }

    void note_flags(size_t member) {
        const int flags = all_fp_errors();
        if (PYOP_LIKELY(flags == 0)) return;
        const std::lock_guard lock(diagnosis_mutex);
        if (!flags_) flags_ = std::make_unique<int[]>(group_.names_.size());
        flags_[member] |= flags;
        clear_all_fp_errors();
    }

    // Where the results of a reduction's rows from that of an element on go; null: nowhere.
    char* reduced(size_t k, npy_intp from) const {
        const LoopGroup::Reduction& r = group_.reductions_[k];
        if (r.output < 0) return nullptr;
        return PyArray_BYTES(as_array(results_[r.output])) + from / rows_[k] * r.what->call.reduction.loop->itemsize();
    }

    // Hands the elements of a block that are to be reduced on.
    void reduce(const Cursors& cursors, npy_intp count, std::vector<RowReduction>& reductions) {
        for (size_t k = 0; k < reductions.size(); ++k) {
            if (reductions[k].add(cursors.reduced(k), count) < 0) failed_ = true;
            if (group_.reductions_[k].what->call.reduction.loop->loop().ignores_flags())
                clear_all_fp_errors();
            else
                note_flags(group_.reductions_[k].member);
        }
    }

    // As the calls one after the other would have.
    PYOP_COLD int report() const {
        for (size_t member = 0; member < group_.names_.size(); ++member)
            if (flags_[member] && report_fp_errors(group_.names_[member].c_str(), flags_[member]) < 0) return -1;
        return 0;
    }

    const LoopGroup& group_;
    PyObject* const* const inputs_;
    PyObject** const results_;
    const StepContext& context_;
    GroupLayout layout_;
    uint64_t overwritten_ = 0;  // externals that a result is written over: read into scratch first
    npy_intp block_ = 0, block_bytes_ = 0, period_ = 1;
    mutable std::atomic<bool> failed_ = false;
    std::vector<npy_intp> rows_;  // by reduction: elements of each row
    Interrupts interrupts_;
    std::unique_ptr<int[]> flags_;  // by member; null while none was raised
};

int LoopGroup::run(PyObject* const* inputs, PyObject** results, const StepContext& context) const {
    return GroupRun(*this, inputs, results, context).run();
}

}  // namespace pyop
